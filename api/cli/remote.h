/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon that the commands speak with, by libskillvm. */
#ifndef SKILLVM_API_CLI_REMOTE_H
#define SKILLVM_API_CLI_REMOTE_H

#include "api/cli/cli.h"
#include "api/client/skillvm.h"
#include "base/nearest.h"

struct cJSON;

/* The daemon of these places; nothing is sent yet. 0, or -errno with err. */
int remote_open(const struct cli *cli, struct skillvm **ret_client, struct err *err);
/*
 * Asks for a path without a body. 0 with the answer's JSON, which the caller deletes, or -errno
 * with error, which may be NULL: also for an answer that is no JSON.
 */
int remote_request_json(struct skillvm *client, const char *method, const char *path,
                        struct cJSON **ret, struct skillvm_error *error);
/* Makes the error one of ours, with what can be done about it. Returns -code. */
int remote_explain(const struct cli *cli, const struct skillvm_error *error, struct err *err);
#define REMOTE_ID_SIZE 128
/* Of struct skillvm_events: has the execution's id in ctx, REMOTE_ID_SIZE bytes. */
int remote_note_id(void *ctx, const char *execution_id, const char *status);
/* Of struct skillvm_events: an interrupt ends the wait. */
int remote_should_stop(void *ctx);
/* Says the error and what can be done about it. Returns CLI_FAILED. */
int remote_failed(const struct cli *cli, const struct skillvm_error *error);
/* The same of a request for a registered skill, with which one may have been meant. */
int remote_failed_skill(const struct cli *cli, const struct skillvm_error *error,
                        const char *name);
#define REMOTE_NO_SKILLS "; none is: register one with `skillvm skill push`"

/* The end of a message on a skill that is none of these, the answer of /v1/skills (NULL: not
   known): which is near, or that there is none. */
void remote_hint_skill(const struct cJSON *skills, const char *name,
                       char out[NEAREST_HINT_SIZE]);

#endif
