/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON body of POST /v1/executions, checked: types, sizes, names, and no key that nobody
 * knows. Input is found, not parsed: it reaches the skill as the bytes that came.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_REQUEST_H
#define SKILLVM_API_DAEMON_ROUTES_REQUEST_H

#include "api/daemon/terms/limits.h"
#include "api/skill/skill.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_FILE_NAME_SIZE (LIMIT_FILE_NAME_BYTES + 1)

enum request_file_from {
    REQUEST_FILE_UPLOADED,
    REQUEST_FILE_LEFT, /* by an execution */
    REQUEST_FILE_TEXT, /* in the request itself */
    REQUEST_FILE_BASE64,
};

/* An input file: strings are owned. */
struct request_file {
    enum request_file_from from;
    char *id;   /* of the upload, or of the execution; else NULL */
    char *left; /* the path of what an execution left, else NULL */
    char *path; /* clean and relative, or NULL: the name it was uploaded under */
    /* The place in the body of the JSON string that is its content. */
    uint64_t at;
    uint64_t bytes;
};

/* Strings are owned, UTF-8, and NULL where the key is absent. */
struct request {
    char *skill;
    char *version;         /* NULL also for "latest" and "" */
    char *code;            /* in place of a skill */
    char *lang;            /* of code, as the caller calls it */
    const char *code_lang; /* what runs code, as of code.h; static */
    char *script;
    char *module;
    char *entry_point;        /* in place of the skill's own */
    char *image;              /* the same */
    struct skill_strings env; /* "NAME=value" */
    struct skill_strings warnings;
    struct skill_strings args;
    bool has_input;     /* and it is not null */
    bool input_is_text; /* "stdin": the input is what this JSON string stands for */
    uint64_t input_at;  /* the input's place in the body */
    uint64_t input_bytes;
    uint64_t timeout_ms;   /* 0: not given */
    uint64_t memory_bytes; /* 0: not given */
    uint32_t pids;         /* 0: not given */
    struct request_file *files;
    size_t n_files;
    bool is_async;
    unsigned retries; /* how often it may be begun again where its node is lost */
    bool is_fresh;    /* its machine shall run nothing else */
    char *network;    /* hosts as of base/host_pattern.h, "" for none at all; NULL: not given */
    char *idempotency_key;
    char *session;
};

/*
 * Parses a body. inline_skill: an archive comes with the request, so that "skill", "version"
 * and "code" must be absent; otherwise "skill" or "code" must be there. 0; -EINVAL (bad
 * request), -EFBIG (input, code, env or args too large) or -ENOMEM. The caller finishes *ret on
 * success.
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
