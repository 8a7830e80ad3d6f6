/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A skill as its SKILL.md describes it. Everything here comes from an untrusted archive: a
 * skill is data, nothing in it is ever run on the host.
 *
 * Functions of api/skill return -errno as everywhere: -EINVAL for a skill that is none, -EFBIG
 * for one that is too large; every other value is the machine's fault and not the skill's.
 */
#ifndef SKILLVM_API_SKILL_SKILL_H
#define SKILLVM_API_SKILL_SKILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKILL_WARNINGS_MAX 100u

/* A growing list of strings. Zero-initialise. */
struct skill_strings {
    char **items; /* owned, each NUL-terminated UTF-8 */
    size_t len;
    int error; /* -ENOMEM once a string could not be added, or 0 */
};

/* Appends a formatted string. 0 or -ENOMEM, which the list remembers. */
int skill_strings_add(struct skill_strings *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends copies of another list's. As above. */
int skill_strings_append(struct skill_strings *list, const struct skill_strings *more);
bool skill_strings_has(const struct skill_strings *list, const char *text);
/*
 * Puts text in its place in a list that is sorted by its bytes. No effect when it is there, or
 * when max are. 0 or -ENOMEM.
 */
int skill_strings_insert(struct skill_strings *list, const char *text, size_t max);
/*
 * Appends a sentence to the warnings of a skill, of which there are SKILL_WARNINGS_MAX: the
 * last says that there were more. As of skill_strings_add.
 */
int skill_warn(struct skill_strings *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void skill_strings_finish(struct skill_strings *list);
#define _cleanup_skill_strings_ __attribute__((cleanup(skill_strings_finish)))

struct skill_pair {
    char *key;
    char *value;
};

/*
 * The front matter and body of a SKILL.md. Strings are owned and NULL where the field is
 * absent; they are valid UTF-8 without NUL.
 */
struct skill {
    char *name;        /* as written; NULL only where loading was lenient and there was none */
    char *description; /* never NULL after a successful load */
    char *license;
    char *compatibility;
    char *allowed_tools;
    char *version;
    bool is_floating; /* the front matter gives it no version */
    char *lang;       /* as written: "python", "bash", "node" are the ones that run */
    char *entry_point;
    char *image;
    char *network; /* the hosts it declares, a list as of base/host_pattern.h;
                      NULL: it says nothing of them, "": that it wants none */
    struct skill_pair *metadata;
    size_t n_metadata;
    uint64_t timeout_ms;   /* 0: not given */
    uint64_t memory_bytes; /* 0: not given */
    uint32_t cpu_millis;   /* 1000 is one CPU; 0: not given */
    char *input_schema;    /* JSON, an object schema in one line; NULL: none that can be used */
    char *instructions;    /* the body, "" when empty; never NULL after a successful load */
    size_t instructions_len;
    struct skill_strings warnings; /* sentences for a person */
};

/* What a skill without a version is registered as. */
#define SKILL_VERSION_NONE "1.0.0"

/* Frees everything and zeroes it; safe on a zeroed or finished skill. */
void skill_finish(struct skill *skill);
#define _cleanup_skill_ __attribute__((cleanup(skill_finish)))

#endif
