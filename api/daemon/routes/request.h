/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of POST /v1/executions, checked: types, sizes, names, and no key that nobody
 * knows. Input is found, not parsed: it reaches the skill as the bytes that came.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_REQUEST_H
#define SKILLVM_API_DAEMON_ROUTES_REQUEST_H

#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_FILE_NAME_SIZE 256u

/* An input file: strings are owned. */
struct request_file {
    char *id;   /* file_ and 32 hexadecimal digits */
    char *path; /* clean and relative, or NULL: the name it was uploaded under */
};

/* Strings are owned, UTF-8, and NULL where the key is absent. */
struct request {
    char *skill;
    char *version; /* NULL also for "latest" */
    char *script;
    char *module;
    struct skill_strings env; /* "NAME=value" */
    struct skill_strings args;
    bool has_input;
    uint64_t input_at; /* the input's place in the body */
    uint64_t input_bytes;
    uint64_t timeout_ms;   /* 0: not given */
    uint64_t memory_bytes; /* 0: not given */
    uint32_t pids;         /* 0: not given */
    struct request_file *files;
    size_t n_files;
    bool is_async;
    bool is_fresh; /* its machine shall run nothing else */
    char *idempotency_key;
};

/*
 * Parses a body. inline_skill: an archive comes with the request, so that "skill" and "version"
 * must be absent; otherwise "skill" must be there. 0; -EINVAL (bad request), -EFBIG (input, env
 * or args too large) or -ENOMEM. The caller finishes *ret on success.
 */
int request_parse(const char *body, size_t len, bool inline_skill, struct request *ret,
                  struct err *err);
/* Safe on a zeroed or finished request. */
void request_finish(struct request *request);

/* True for what a skill may be called: no path, no control bytes, of bounded length. */
bool request_name_valid(const char *name, size_t max_bytes);
/*
 * Writes the name that a file is uploaded under: UTF-8, one component, no control bytes. 0, or
 * -EINVAL with the rule that was broken.
 */
int request_file_name(const char *raw, char ret_name[REQUEST_FILE_NAME_SIZE], struct err *err);

#endif
