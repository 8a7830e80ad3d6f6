/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `skillvm-vmm probe` found (vmm/control.h), as key and value lines.
 */
#ifndef SKILLVM_API_CLI_PROBE_H
#define SKILLVM_API_CLI_PROBE_H

#include "api/cli/cli.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define PROBE_LINES_MAX 64u

struct probe {
    char *text; /* owned; the lines point into it */
    struct {
        const char *key;
        const char *value;
    } lines[PROBE_LINES_MAX];
    size_t n;
    bool usable;
};

/* Runs it (about two seconds at most). 0, or -errno with err when it could not be run. */
int probe_run(const struct cli *cli, struct probe *ret_probe, struct err *err);
/* Takes text over and finds its lines. */
void probe_parse(struct probe *probe, char *text);
/* The key's value, or NULL. */
const char *probe_get(const struct probe *probe, const char *key);
/* One sentence on why KVM cannot be used; "" when it can. */
const char *probe_reason(const struct probe *probe);
void probe_finish(struct probe *probe);

#endif
