/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of a script as parser_probe.py describes it, checked: the description
 * comes out of a guest, so nothing in it is trusted and everything in it has a limit. It says
 * what a tool's arguments are called and what they may be; it never says what is run.
 *
 *   {"version": 1, "doc": text | null, "parser": PARSER | null}
 *   PARSER:  {"description": text | null, "actions": [ACTION…]}
 *   ACTION:  {"kind": "store" | "append" | "extend" | "set" | "unset" | "switch" | "count",
 *             "dest": text, "options": [text…], "nargs": null | 1… | "?" | "*" | "+" | "rest",
 *             "type": "string" | "integer" | "number" | "boolean" | "json",
 *             "choices": null | [scalar…], "default": any, "required": bool,
 *             "help": text | null}
 *        or  {"kind": "commands", "dest": text | null, "required": bool, "help": text | null,
 *             "commands": [{"name": text, "help": text | null, "parser": PARSER}…]}
 */
#ifndef SKILLVM_API_TOOLS_PARSER_H
#define SKILLVM_API_TOOLS_PARSER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define PARSER_BYTES_MAX    (64u * 1024u) /* of the description */
#define PARSER_DEPTH_MAX    4u            /* commands below commands */
#define PARSER_ACTIONS_MAX  128u          /* of one parser */
#define PARSER_COMMANDS_MAX 64u           /* of one parser */
#define PARSER_TOTAL_MAX    1024u         /* actions and commands together */
#define PARSER_OPTIONS_MAX  16u           /* names of one action */
#define PARSER_CHOICES_MAX  200u
#define PARSER_NARGS_MAX    64u
#define PARSER_COUNT_MAX    32                 /* times that a counted option is given */
#define PARSER_SAFE_NUMBER  9007199254740992.0 /* what a double holds exactly */
#define PARSER_TEXT_MAX     4096u
#define PARSER_NAME_SIZE    65u /* of a property, with its NUL */

struct cJSON;

enum parser_kind {
    PARSER_STORE,
    PARSER_APPEND, /* each time it is given */
    PARSER_EXTEND,
    PARSER_SET,    /* takes no value */
    PARSER_UNSET,  /* takes no value, and makes something false */
    PARSER_SWITCH, /* --x and --no-x */
    PARSER_COUNT,
    PARSER_COMMANDS,
};

enum parser_type {
    PARSER_STRING,
    PARSER_INTEGER,
    PARSER_NUMBER,
    PARSER_BOOLEAN,
    PARSER_JSON,
};

enum parser_nargs {
    PARSER_ONE,
    PARSER_OPTIONAL, /* "?" */
    PARSER_ANY,      /* "*" */
    PARSER_SOME,     /* "+" */
    PARSER_REST,     /* all that is left, whatever it is */
    PARSER_EXACT,    /* count of them, as a list */
};

struct parser_command;

struct parser_action {
    enum parser_kind kind;
    /*
     * What it is called in JSON: letters, digits, '_', '-' and '.', unique in its parser. An
     * action of a command may have the name of one outside it: then both mean the same.
     */
    char property[PARSER_NAME_SIZE];
    char **options; /* owned; none: a positional argument */
    size_t n_options;
    enum parser_nargs nargs;
    unsigned count;
    enum parser_type type;
    struct cJSON *choices;       /* an owned array of scalars of its type, or NULL */
    struct cJSON *default_value; /* owned, of its type, or NULL */
    bool required;
    bool sets_on; /* SET and UNSET: the value in JSON with which the option is given */
    char *help;   /* owned or NULL */
    struct parser_command *commands;
    size_t n_commands;
};

struct parser {
    char *description; /* owned or NULL */
    struct parser_action *actions;
    size_t n_actions;
};

struct parser_command {
    char *name;
    char *help; /* or NULL */
    struct parser parser;
};

/* All of a description. */
struct parser_script {
    char *doc; /* the script's own words about itself, or NULL */
    bool has_parser;
    struct parser parser;
};

/*
 * Reads a description. 0; -EINVAL with the reason for what is none or breaks a limit; -ENOMEM.
 * The caller finishes *ret on success.
 */
int parser_read(const char *text, size_t len, struct parser_script *ret, struct err *err);
/* The option by which an action that has some is known: the first long one, else the first. */
const char *parser_action_option(const struct parser_action *a);
/* True where the argument's value in JSON is a list. */
bool parser_action_is_list(const struct parser_action *a);
/* True when an action of the parser or of its commands has this property. */
bool parser_takes(const struct parser *parser, const char *property);
/* Safe on a zeroed or finished one. */
void parser_script_finish(struct parser_script *script);

#endif
