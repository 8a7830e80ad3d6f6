/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of settings. Reading and writing them, the options of skillvmd, its help, its
 * manuals, the sample file and docs/config.md are all made of it: a new setting is a row here
 * and a member of struct config.
 */
#ifndef SKILLVM_API_DAEMON_CONFIG_CONFIG_KEYS_H
#define SKILLVM_API_DAEMON_CONFIG_CONFIG_KEYS_H

#include "api/daemon/config/config_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_key {
    const char *name; /* "limits.max_running"; at most one dot */
    enum config_type type;
    size_t offset; /* in struct config */
    uint64_t min;  /* as of config_value_parse */
    uint64_t max;
    const char *initial; /* the default, as it is written */
    bool live;           /* a reload can change it */
    const char *option;  /* of the command line, "--max-running"; NULL: there is none */
    const char *takes;   /* what that takes, "N" */
    const char *text;    /* what it is; words to be written as they are stand in backticks */
};

/* Ends with one without a name. */
extern const struct config_key config_keys[];

/* A name before the dot, and what those behind it have in common. Every such name has one. */
struct config_section {
    const char *name;
    const char *text;
};

/* Ends with one without a name. */
extern const struct config_section config_sections[];

/* The one of this name, or NULL. */
const struct config_key *config_key_find(const char *name);
/* How long the name of its section is, 0 for none. */
size_t config_key_section(const struct config_key *key);
/* The section of this name, or NULL. */
const struct config_section *config_section_find(const char *name, size_t len);
/* The one that a key is the first of, or NULL. */
const struct config_section *config_section_begun(const struct config_key *key);
/* True when both have the same value for a key. */
bool config_key_equal(const struct config_key *key, const struct config *a,
                      const struct config *b);
/* Copies a live key. */
void config_key_adopt(const struct config_key *key, struct config *config,
                      const struct config *from);
/* Its place in a config, and in one that is only looked at. */
void *config_key_place(const struct config_key *key, struct config *config);
const void *config_key_look(const struct config_key *key, const struct config *config);

#endif
