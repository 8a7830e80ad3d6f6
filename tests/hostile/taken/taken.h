/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvm-vmm-taken: the real VMM, from its command line to its last filter, in which an
 * attacker's code runs in place of its loops. It does what tests/hostile/taken_driver.py tells
 * it, one attempt after the other, and can be told to leave layers out, which the real one
 * cannot. For tests only.
 *
 *   skillvm-vmm-taken OFF restore …      OFF: the sum of enum taken_layer that are left out
 *
 * Over the control socket come texts "attempt=NAME\nthread=main|vcpu\nKEY=VALUE\n…"; each is
 * answered by an event of type TAKEN_RESULT: its value is 0 or an errno, its message what was
 * learned, or neither where the attempt ends the process.
 */
#ifndef SKILLVM_TESTS_HOSTILE_TAKEN_TAKEN_H
#define SKILLVM_TESTS_HOSTILE_TAKEN_TAKEN_H

#include <stddef.h>

#include "vmm/harden.h"

#define TAKEN_READY  100u
#define TAKEN_RESULT 101u

/* The numbers that a descriptor of its own may have. */
#define TAKEN_FDS 64

/* What of vmm/harden.h can be left out. */
enum taken_layer {
    TAKEN_FILTER = 1,
    TAKEN_LANDLOCK = 2,
    TAKEN_CAPABILITIES = 4,
    TAKEN_RLIMITS = 8,
    TAKEN_PROCESS = 16, /* harden_process, and closing what is not needed any more */
};

/* try: 0 when it was done, else -errno; what it learned it tells. */
struct attempt {
    const char *name;
    int (*try)(void);
};

/* Each ends with a name that is NULL. */
extern const struct attempt taken_files[], taken_others[], taken_rights[], taken_resources[];

/* What the driver gave for a key, or "" or 0. */
const char *taken_given(const char *key);
long taken_number(const char *key);
/* Of it the driver is told the first 255 bytes that are no NUL. */
void taken_tell(const void *bytes, size_t n);
/* 0 or -errno, of a call. */
int taken_done(long r);
/* The descriptors of the machine. */
const struct harden_plan *taken_plan(void);
/* A page below 4 GiB, for calls of 32 bits; or NULL. */
char *taken_low_page(void);

#endif
