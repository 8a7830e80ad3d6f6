/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the registry share: the connection, its lock, the prepared statements of
 * each file. Only registry*.c include it.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_INTERNAL_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_INTERNAL_H

#include "api/daemon/registry/registry.h"

struct sqlite3_stmt;

enum registry_part {
    REGISTRY_SKILLS,
    REGISTRY_EXECUTIONS,
    REGISTRY_TENANTS,
    REGISTRY_KEYS,
    REGISTRY_FILES,
    REGISTRY_USAGE,
    REGISTRY_AUDIT,
    REGISTRY_TOOLS,
    REGISTRY_RETENTION,
    REGISTRY_PARTS,
};

/* The SQL of a part; a statement is known by its place in text. */
struct registry_statements {
    const char *const *text;
    size_t n;
};

extern const struct registry_statements registry_skill_statements;
extern const struct registry_statements registry_execution_statements;
extern const struct registry_statements registry_tenant_statements;
extern const struct registry_statements registry_key_statements;
extern const struct registry_statements registry_file_statements;
extern const struct registry_statements registry_usage_statements;
extern const struct registry_statements registry_audit_statements;
extern const struct registry_statements registry_tool_statements;
extern const struct registry_statements registry_retention_statements;

/*
 * Takes the lock of its connection and gives a statement ready to bind. One that only reads has
 * a connection of its own: it sees what was committed, never what a transaction is about.
 */
struct sqlite3_stmt *registry_begin(struct registry *registry, enum registry_part part,
                                    unsigned which);
/* Gives the statement and the lock back. */
void registry_end(struct registry *registry, struct sqlite3_stmt *s);
/* Runs a bound statement that gives no rows, and ends it. */
int registry_run(struct registry *registry, struct sqlite3_stmt *s, const char *what,
                 struct err *err);
/* The same where a row must change: -ENOENT when none did. */
int registry_run_on_row(struct registry *registry, struct sqlite3_stmt *s, const char *what,
                        struct err *err);

/* Steps a bound statement to its next row. 0, -ENOENT when there is none, -EIO; not ended. */
int registry_fetch(struct registry *registry, struct sqlite3_stmt *s, const char *what,
                   struct err *err);

/* A kind of row: how large it is, how it is read (false without memory) and freed. */
struct registry_rows {
    size_t size;
    bool (*read)(struct sqlite3_stmt *s, void *ret); /* into zeros */
    void (*finish)(void *row);
};
/*
 * Reads up to max rows of a bound statement, and ends it. *ret_n are the caller's to finish. 0,
 * -ENOMEM or -EIO.
 */
int registry_read_rows(struct registry *registry, struct sqlite3_stmt *s,
                       const struct registry_rows *kind, size_t max, void *rows, size_t *ret_n,
                       const char *what, struct err *err);
/* The same for one: -ENOENT where there is none. */
int registry_read_row(struct registry *registry, struct sqlite3_stmt *s,
                      const struct registry_rows *kind, void *ret, const char *what,
                      struct err *err);
/* Reads the one number of a bound statement, and ends it. */
int registry_read_number(struct registry *registry, struct sqlite3_stmt *s, const char *what,
                         uint64_t *ret, struct err *err);

/* Takes the lock and opens a transaction. On failure the lock is not held. */
int registry_transaction_begin(struct registry *registry, struct err *err);
/* Commits where result is 0, else undoes; gives the lock back. result, or -EIO. */
int registry_transaction_end(struct registry *registry, int result, struct err *err);
/* Within a transaction: a statement ready to bind; runs one that gives no rows. */
struct sqlite3_stmt *registry_statement(struct registry *registry, enum registry_part part,
                                        unsigned which);
int registry_step(struct registry *registry, struct sqlite3_stmt *s, const char *what,
                  struct err *err);
/* Both, with this text bound to ?1. */
int registry_step_for(struct registry *registry, enum registry_part part, unsigned which,
                      const char *text, const char *what, struct err *err);

/* Takes the lock and runs SQL text that gives no rows anybody wants. 0 or -EIO. */
int registry_execute(struct registry *registry, const char *sql, const char *what,
                     struct err *err);

/* -EIO with SQLite's words. */
int registry_error(struct registry *registry, struct err *err, const char *what);
int registry_no_memory(struct err *err);
/* Of the last statement, under the lock: how many rows it changed, whether it broke a
 * uniqueness, whether it named a tenant that is not there. */
int registry_changes(struct registry *registry);
bool registry_is_duplicate(struct registry *registry);
bool registry_is_orphan(struct registry *registry);

void registry_bind_text(struct sqlite3_stmt *s, int at, const char *text);
void registry_bind_u64(struct sqlite3_stmt *s, int at, uint64_t value);
uint64_t registry_column_u64(struct sqlite3_stmt *s, int at);
/* A copy of a text column that is never NULL. False without memory. */
bool registry_column(struct sqlite3_stmt *s, int at, char **ret);
/* The same; NULL for NULL. */
bool registry_column_or_null(struct sqlite3_stmt *s, int at, char **ret);
/* Copies a text column to a place of fixed size. */
void registry_column_copy(struct sqlite3_stmt *s, int at, char *ret, size_t size);
/* Binds ?1 and ?2 of a page "(time, id) < (?1, ?2)": from after a place, or the beginning. */
void registry_bind_place(struct sqlite3_stmt *s, uint64_t after_ns, const char *after_id);

#endif
