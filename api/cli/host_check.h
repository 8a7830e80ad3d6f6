/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `skillvm doctor` looks at. It reads and never changes a setting.
 */
#ifndef SKILLVM_API_CLI_HOST_CHECK_H
#define SKILLVM_API_CLI_HOST_CHECK_H

#include "api/cli/cli.h"

#include <stdbool.h>
#include <stddef.h>

#define HOST_CHECKS_MAX 24u

enum host_check_level { HOST_CHECK_OK, HOST_CHECK_NOTE, HOST_CHECK_BAD };

struct host_check {
    const char *name;
    enum host_check_level level;
    char found[512];
    char advice[512]; /* "" where there is nothing to do */
};

struct host_check_report {
    struct host_check checks[HOST_CHECKS_MAX];
    size_t n;
    bool probed; /* the KVM probe gave an answer */
    bool kvm_usable;
    bool soft_usable;
    char summary[512];
};

/* "ok", "note" or "bad". */
const char *host_check_level_name(enum host_check_level level);
/*
 * What another kernel than this version of Linux would be better for, in out; "" where there is
 * nothing. Versions are kernel.org's: a distribution's older kernel may have some of it.
 */
void host_check_kernel_advice(unsigned major, unsigned minor, char *out, size_t size);
/* Looks at everything; takes as long as the KVM probe, about two seconds at most. */
void host_check_examine(const struct cli *cli, struct host_check_report *ret_report);

#endif
