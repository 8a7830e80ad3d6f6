/* SPDX-License-Identifier: Apache-2.0 */
/* parser_probe.py as the daemon carries it: what runs in the guest to describe a parser. */
#ifndef SKILLVM_API_TOOLS_PROBE_H
#define SKILLVM_API_TOOLS_PROBE_H

#include <stddef.h>

extern const unsigned char parser_probe[];
extern const size_t parser_probe_len;

#endif
