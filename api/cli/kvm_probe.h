/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `skillvm-vmm probe` found (vmm/control.h), as key and value lines.
 */
#ifndef SKILLVM_API_CLI_KVM_PROBE_H
#define SKILLVM_API_CLI_KVM_PROBE_H

#include "api/cli/cli.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define KVM_PROBE_LINES_MAX 64u

struct kvm_probe {
    char *text; /* owned; the lines point into it */
    struct {
        const char *key;
        const char *value;
    } lines[KVM_PROBE_LINES_MAX];
    size_t n;
    bool usable;
};

/*
 * Runs it (about two seconds at most): program is skillvm-vmm, or skillvm-jail, which says in
 * the same way what of the machines' jail can be had. 0, or -errno with err when it could not
 * be run.
 */
int kvm_probe_run(const struct cli *cli, const char *program, struct kvm_probe *ret_probe,
                  struct err *err);
/* Takes text over and finds its lines. */
void kvm_probe_parse(struct kvm_probe *probe, char *text);
/* The key's value, or NULL. */
const char *kvm_probe_get(const struct kvm_probe *probe, const char *key);
/* One sentence on why KVM cannot be used; "" when it can. */
const char *kvm_probe_reason(const struct kvm_probe *probe);
void kvm_probe_finish(struct kvm_probe *probe);

#endif
