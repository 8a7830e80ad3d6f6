/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The skills of a tenant as tools of a model: the latest version of each, one tool for a skill
 * with an entry, one for each script of a skill without; before them the one that runs code.
 * What a tool takes comes from the front matter, else from the script's own parser, else it is
 * any object.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_TOOL_CATALOG_H
#define SKILLVM_API_DAEMON_ROUTES_TOOL_CATALOG_H

#include "api/daemon/routes/daemon.h"
#include "api/skill/archive.h"
#include "api/skill/skill.h"
#include "api/tools/parser.h"
#include "api/tools/tool_names.h"
#include "base/buf.h"
#include "base/err.h"
#include "guest-init/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings are owned. */
struct tool {
    char name[TOOL_NAME_SIZE];
    char *skill;
    char *version;
    char *digest;
    char *packages;           /* the digest of its packages; "": none */
    char *packages_list;      /* which they are, as wheels.h writes them; NULL: none */
    uint64_t packages_python; /* the minor version of Python 3 that they are for */
    char *script;             /* the caller's choice of what runs; NULL: the skill's entry */
    char *path;               /* of what runs */
    char *summary;            /* the skill's description */
    char *schema;             /* of the front matter, or NULL */
    char *image;              /* the same */
    enum proto_mode mode;
    bool is_python;
    bool is_code; /* run_code.h: no skill's, so that only name, summary and schema are set */

    /* From tool_catalog_describe on. */
    bool is_pending; /* it is being looked at */
    struct parser_script about;
};

/* What it takes counts as held for its tenant, like answers that were not read. */
struct tool_catalog {
    struct tool *items;
    size_t n;
    uint64_t bytes;      /* that the tools take, and what is made of them */
    uint64_t held_bytes; /* of these */
    struct held *held;   /* borrowed; NULL: nobody counts */
    char tenant[TENANT_ID_SIZE];
};

/*
 * Lists the tools of a tenant, by skill and script. 0, -ENOMEM, -EIO, -EBUSY where too many
 * wait for their turn, or as tool_catalog_hold; finish *ret.
 */
int tool_catalog_load(struct daemon *d, const char *tenant, struct tool_catalog *ret,
                      struct err *err);
/*
 * Counts so many bytes more that are made of it. 0; -EBUSY where the tenant's answers leave no
 * room for them; -E2BIG where there never is; -ENOMEM.
 */
int tool_catalog_hold(struct tool_catalog *tools, uint64_t bytes, struct err *err);
/* Forgets what it has of a tool. */
void tool_catalog_forget(struct tool_catalog *tools, struct tool *tool);
/* Finds one by its name. 0, -ENOENT, or as tool_catalog_load; the caller finishes *ret. */
int tool_catalog_find(struct daemon *d, const char *tenant, const char *name, struct tool *ret,
                      struct err *err);

/* When somebody who begins to wait for what is looked at now gives up (monotonic). */
uint64_t tool_catalog_deadline_ns(const struct daemon *d);
/*
 * Completes a tool by what is known of its script, and has it looked at where nothing is:
 * -EAGAIN then, unless that is over by deadline_ns (0: that alone, nothing is read). 0 also
 * where nothing can be known. -ENOMEM; -EIO.
 */
int tool_catalog_describe(struct daemon *d, const char *tenant, struct tool *tool,
                          uint64_t deadline_ns, struct err *err);
/* True when its arguments become a command line, and not the input. */
bool tool_takes_argv(const struct tool *tool);

/*
 * True when its argument "files" is the files that it finds in /sandbox/in: its own arguments
 * are known to have none of that name.
 */
bool tool_takes_files(const struct tool *tool);

/* Has the scripts of a skill that was just registered, as row, looked at. */
void tool_catalog_prepare(struct daemon *d, const char *tenant,
                          const struct registry_skill *row, const struct skill *skill,
                          const struct skill_archive *archive);

/* Safe on zeroed and finished ones. */
void tool_finish(struct tool *tool);
#define _cleanup_tool_ __attribute__((cleanup(tool_finish)))
void tool_catalog_finish(struct tool_catalog *tools);
#define _cleanup_tool_catalog_ __attribute__((cleanup(tool_catalog_finish)))

#endif
