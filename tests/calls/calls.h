/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of what Linux gives a program: each is a system call or a few that belong together,
 * tried the way a program uses them, in a process and an empty folder of its own. What
 * docs/syscalls.md promises of a skill is held against what they report.
 */
#ifndef SKILLVM_TESTS_CALLS_H
#define SKILLVM_TESTS_CALLS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* One of three: a function, a file that is opened (and read, when it is to be read), or one
 * call. */
struct probe {
    const char *name;
    /* 0 when all of it works, -errno of the first that was refused, or probe_says. */
    int (*run)(void);
    const char *path;
    int flags;
    long number;
    long args[6];
};

struct probe_list {
    const struct probe *items;
    size_t len;
};

#define PROBE(title, function)                                                                 \
    {                                                                                          \
        .name = (title), .run = (function)                                                     \
    }
#define PROBE_LIST(array)                                                                      \
    {                                                                                          \
        (array), sizeof(array) / sizeof((array)[0])                                            \
    }

extern const struct probe_list calls_files;
extern const struct probe_list calls_memory;
extern const struct probe_list calls_streams;
extern const struct probe_list calls_processes;
extern const struct probe_list calls_signals;
extern const struct probe_list calls_threads;
extern const struct probe_list calls_sockets;
extern const struct probe_list calls_privileged;
extern const struct probe_list calls_views;

/* A result that is no errno, in words; what it gives is the probe's to return. */
int probe_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the child of a probe: its exit status is 0 when the condition held. */
void __attribute__((noreturn)) probe_child_end(bool good);
/* 0 when the child exits with status 0, else what became of it in words. */
int probe_child_wait(int pid);

/* Leaves the probe with the errno of a call that failed. */
#define TRY(call)                                                                              \
    do {                                                                                       \
        if ((call) < 0)                                                                        \
            return -errno;                                                                     \
    } while (0)

/* Leaves the probe with the error that a function returned rather than set. */
#define TRY_ERROR(call)                                                                        \
    do {                                                                                       \
        int try_error = (call);                                                                \
        if (try_error)                                                                         \
            return -try_error;                                                                 \
    } while (0)

/* Leaves the probe with what a part of it gave. */
#define TRY_PROBE(part)                                                                        \
    do {                                                                                       \
        int try_part = (part);                                                                 \
        if (try_part)                                                                          \
            return try_part;                                                                   \
    } while (0)

/* Leaves the probe when a call worked, but did not do what it is for. */
#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition))                                                                      \
            return probe_says("not so: %s", #condition);                                       \
    } while (0)

#endif
