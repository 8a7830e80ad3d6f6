/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RUN message of guest-init/proto.h, decoded: what to run and within which limits.
 * It must never keep a pointer into the message or accept a path that leaves the skill.
 */
#ifndef SKILLVM_GUEST_RUN_H
#define SKILLVM_GUEST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "guest-init/proto.h"

enum run_lang { RUN_LANG_PYTHON, RUN_LANG_BASH, RUN_LANG_NODE };
#define RUN_LANGS (RUN_LANG_NODE + 1)

/*
 * A list of owned strings, NULL-terminated in items. Adding remembers the first failure, after
 * which nothing is added.
 */
struct run_strings {
    char **items;
    size_t count;
    int error; /* -errno, or 0 */
};
#define _cleanup_run_strings_ __attribute__((cleanup(run_strings_finish)))

struct run {
    enum run_lang lang;
    enum proto_mode mode;
    char *entry; /* path below the skill's root, or a dotted module name */
    struct run_strings args;
    struct run_strings env; /* "NAME=value" */
    char *instructions;     /* NULL when absent */
    char *skill_name;       /* NULL when absent */
    uint64_t timeout_ms;
    uint64_t memory_bytes;
    uint64_t log_bytes;
    uint64_t files_bytes;
    uint64_t output_bytes;
    uint32_t pids_max;
    uint32_t files_max;
    bool has_packages;      /* they come before the skill */
    bool is_on_disk;        /* the skill is */
    uint64_t session_bytes; /* 0: there is no session */
    uint32_t session_files;
    bool has_network;
};

/*
 * Decodes len bytes of RUN. Absent limits get the defaults of design.md section 5. 0, or -errno
 * with err set. The caller owns *ret_run and ends it with run_finish; on failure it is empty.
 */
int run_decode(const void *data, size_t len, struct run *ret_run, struct err *err);
/* Frees what a run owns; safe on a zeroed one. */
void run_finish(struct run *run);

/* Appends a copy of len bytes of text. 0, -E2BIG or -ENOMEM. */
int run_strings_add(struct run_strings *list, const void *text, size_t len);
/* Appends "name=value". 0, -E2BIG or -ENOMEM. */
int run_strings_add_env(struct run_strings *list, const char *name, const char *value);
void run_strings_finish(struct run_strings *list);

#endif
