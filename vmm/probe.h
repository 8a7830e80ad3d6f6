/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether KVM can run an ordinary kernel here, by running a tiny guest that uses what
 * such a kernel uses. The guest runs in a child process, because a broken KVM may never return:
 * whatever happens, the answer comes within the time limit.
 */
#ifndef SKILLVM_VMM_PROBE_H
#define SKILLVM_VMM_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define PROBE_TESTS_MAX 8u

/* A guest that runs slower than this is being emulated instruction by instruction. */
#define PROBE_MIN_INSTRUCTIONS_PER_SECOND 20000000u

enum probe_status {
    PROBE_NOT_RUN,
    PROBE_RUNNING, /* the child was killed while it ran */
    PROBE_OK,
    PROBE_FAILED,
};

/* What is known so far; lies in memory that parent and child share. */
struct probe_report {
    char open[96]; /* "ok" or why not; "" when it was not tried */
    char vm[96];   /* the same for creating a machine */
    char cpu[64];
    int api_version;
    uint32_t n_tests;
    struct probe_test {
        const char *name;  /* a constant: key of the test */
        const char *label; /* a constant: as a sentence names it */
        enum probe_status status;
        char text[64]; /* of a failure: what it does in the guest, a verb first */
    } tests[PROBE_TESTS_MAX];
    uint64_t instructions_per_second; /* 0: not measured */
    uint64_t exits_per_second;
};

/*
 * Fills *ret_report within timeout_ms. 0, or -errno when no child could be started. Whether KVM
 * is usable is what probe_explain says.
 */
int probe_run(unsigned timeout_ms, struct probe_report *ret_report, struct err *err);

/*
 * True when KVM is usable. Otherwise reason (cap bytes) gets one sentence that says why not.
 */
bool probe_explain(const struct probe_report *report, char *reason, unsigned cap);

#endif
