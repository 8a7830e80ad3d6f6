/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `skillvm doctor` looks at. It reads and never changes a setting.
 */
#ifndef SKILLVM_API_CLI_MACHINE_H
#define SKILLVM_API_CLI_MACHINE_H

#include "api/cli/cli.h"

#include <stdbool.h>
#include <stddef.h>

#define MACHINE_CHECKS_MAX 24u

enum machine_level { MACHINE_OK, MACHINE_NOTE, MACHINE_BAD };

struct machine_check {
    const char *name;
    enum machine_level level;
    char found[512];
    char advice[512]; /* "" where there is nothing to do */
};

struct machine_report {
    struct machine_check checks[MACHINE_CHECKS_MAX];
    size_t n;
    bool probed; /* the KVM probe gave an answer */
    bool kvm_usable;
    bool soft_usable;
    char summary[512];
};

/* "ok", "note" or "bad". */
const char *machine_level_name(enum machine_level level);
/*
 * What another kernel than this version of Linux would be better for, in out; "" where there is
 * nothing. Versions are kernel.org's: a distribution's older kernel may have some of it.
 */
void machine_kernel_advice(unsigned major, unsigned minor, char *out, size_t size);
/* Looks at everything; takes as long as the KVM probe, about two seconds at most. */
void machine_examine(const struct cli *cli, struct machine_report *ret_report);

#endif
