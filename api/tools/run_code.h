/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one tool that is no skill's: it runs code that the model writes. What it is called and
 * what a model is told of it.
 */
#ifndef SKILLVM_API_TOOLS_RUN_CODE_H
#define SKILLVM_API_TOOLS_RUN_CODE_H

#define RUN_CODE_NAME "run_code"

extern const char run_code_description[];
/*
 * A JSON schema of an object whose members are those of POST /v1/executions with the same
 * names.
 */
extern const char run_code_schema[];

#endif
