/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the registry share: the connection, its lock, the prepared statements of
 * each file. Only registry*.c include it.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_INTERNAL_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_INTERNAL_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_sessions.h"

struct sqlite3_stmt;

enum registry_part {
    REGISTRY_SKILLS,
    REGISTRY_EXECUTIONS,
    REGISTRY_RESULTS,
    REGISTRY_TENANTS,
    REGISTRY_KEYS,
    REGISTRY_FILES,
    REGISTRY_USAGE,
    REGISTRY_AUDIT,
    REGISTRY_AUDIT_SHARED,
    REGISTRY_TOOLS,
    REGISTRY_RETENTION,
    REGISTRY_SESSIONS,
    REGISTRY_CHANGES,
    REGISTRY_RECORDS,
    REGISTRY_OF_PLACES,
    REGISTRY_SKILL_PLAN,
    REGISTRY_FILE_PLAN,
    REGISTRY_SESSION_PLAN,
    REGISTRY_ENTRIES,
    REGISTRY_PARTS,
};

/* The SQL of a part; a statement is known by its place in text. */
struct registry_statements {
    const char *const *text;
    size_t n;
};

extern const struct registry_statements registry_skill_statements;
extern const struct registry_statements registry_execution_statements;
extern const struct registry_statements registry_result_statements;
extern const struct registry_statements registry_tenant_statements;
extern const struct registry_statements registry_key_statements;
extern const struct registry_statements registry_file_statements;
extern const struct registry_statements registry_usage_statements;
extern const struct registry_statements registry_audit_statements;
extern const struct registry_statements registry_audit_shared_statements;
extern const struct registry_statements registry_tool_statements;
extern const struct registry_statements registry_retention_statements;
extern const struct registry_statements registry_session_statements;
extern const struct registry_statements registry_change_statements;
extern const struct registry_statements registry_record_statements;
extern const struct registry_statements registry_place_statements;
extern const struct registry_statements registry_skill_plan_statements;
extern const struct registry_statements registry_file_plan_statements;
extern const struct registry_statements registry_session_plan_statements;
extern const struct registry_statements registry_entry_statements;

/* What is bound to a statement's places, in turn; a list ends with REGISTRY_NONE. */
enum registry_type {
    REGISTRY_NONE,
    REGISTRY_TEXT,
    REGISTRY_NUMBER,
    /* Only of columns. */
    REGISTRY_TEXT_OR_NULL,
    REGISTRY_ID, /* text in a place of fixed size */
    REGISTRY_BOOL,
    REGISTRY_ENUM,
};
struct registry_value {
    enum registry_type type;
    const char *text; /* borrowed; NULL is NULL */
    uint64_t number;  /* of a text: how many bytes */
};
#define REGISTRY_VALUES(...)                                                                   \
    ((const struct registry_value[]){__VA_ARGS__, {.type = REGISTRY_NONE}})
struct registry_value registry_text(const char *text);
struct registry_value registry_bytes(const char *text, size_t len);
struct registry_value registry_number(uint64_t number);
/* The two of a page "(time, id) < (?, ?)": from after a place, or the beginning for NULL. */
struct registry_value registry_after(uint64_t after_ns, const char *after_id);
struct registry_value registry_after_id(const char *after_id);

/*
 * Takes the lock of its connection and gives a statement with values bound, as many of them as
 * it has places. One that only reads has a connection of its own: it sees what was committed,
 * never what a transaction is about. NULL, with the lock, where it cannot be prepared: a step
 * of it fails.
 */
struct sqlite3_stmt *registry_begin(struct registry *registry, enum registry_part part,
                                    unsigned which, const struct registry_value *values);
/* Gives the statement and the lock back. */
void registry_end(struct registry *registry, enum registry_part part, unsigned which,
                  struct sqlite3_stmt *s);
/* Runs a statement that gives no rows. 0 or -EIO. */
int registry_run(struct registry *registry, enum registry_part part, unsigned which,
                 const struct registry_value *values, const char *what, struct err *err);
/*
 * The same where a row must change; without a message also -ENOENT when none did or it names a
 * tenant that is not there, and -EEXIST for what breaks a uniqueness.
 */
int registry_put(struct registry *registry, enum registry_part part, unsigned which,
                 const struct registry_value *values, const char *what, struct err *err);

/* A column of a row, and the member it is read to. Strings are the row's; no text is NULL. */
struct registry_column {
    enum registry_type type;
    size_t at;
    size_t size;
};
#define REGISTRY_COLUMN(type, row, member)                                                     \
    {                                                                                          \
        type, offsetof(struct row, member), sizeof(((struct row *)0)->member)                  \
    }
/* A kind of row, its columns in the order of its statements, which may leave the last ones out.
 */
struct registry_rows {
    size_t size;
    const struct registry_column *columns;
    size_t n;
    void (*mend)(void *row); /* after it was read; or NULL */
};
#define REGISTRY_ROWS(row, columns)                                                            \
    {                                                                                          \
        sizeof(struct row), columns, sizeof(columns) / sizeof((columns)[0]), NULL              \
    }
/* Frees the strings of a row and zeroes it. */
void registry_row_finish(const struct registry_rows *kind, void *row);
/* Defines the function that does so for a kind of row. */
#define REGISTRY_FINISH(row, kind)                                                             \
    void row##_finish(struct row *owned)                                                       \
    {                                                                                          \
        registry_row_finish(&(kind), owned);                                                   \
    }
/*
 * Reads up to max rows of a statement. *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_read_rows(struct registry *registry, enum registry_part part, unsigned which,
                       const struct registry_value *values, const struct registry_rows *kind,
                       size_t max, void *rows, size_t *ret_n, const char *what,
                       struct err *err);
/* The same for one: -ENOENT where there is none. */
int registry_read_row(struct registry *registry, enum registry_part part, unsigned which,
                      const struct registry_value *values, const struct registry_rows *kind,
                      void *ret, const char *what, struct err *err);
/* Reads the one number of a statement. */
int registry_read_number(struct registry *registry, enum registry_part part, unsigned which,
                         const struct registry_value *values, const char *what, uint64_t *ret,
                         struct err *err);

/* Takes the lock and opens a transaction. On failure the lock is not held. */
int registry_transaction_begin(struct registry *registry, struct err *err);
/* Commits where result is 0, else undoes; gives the lock back. result, or -EIO. */
int registry_transaction_end(struct registry *registry, int result, struct err *err);
/* Within a transaction: runs a statement that gives no rows. */
int registry_step(struct registry *registry, enum registry_part part, unsigned which,
                  const struct registry_value *values, const char *what, struct err *err);
/* The same as registry_put, within a transaction. */
int registry_put_step(struct registry *registry, enum registry_part part, unsigned which,
                      const struct registry_value *values, const char *what, struct err *err);
/* Within a transaction, of an execution: what it left of its session. */
int registry_session_put(struct registry *registry, const struct registry_session *session,
                         struct err *err);
#define REGISTRY_PUT_COLUMNS 16u
/* The same of a statement whose places are the columns of a row, so many at most, which
 * borrows. */
int registry_put_row(struct registry *registry, enum registry_part part, unsigned which,
                     const struct registry_rows *kind, const void *row, const char *what,
                     struct err *err);
/* Of the last statement there: how many rows it changed. */
int registry_changes(struct registry *registry);

/* The limits of a tenant as columns, in the order of struct tenant_limits, and places for them.
 */
#define REGISTRY_LIMIT_COLUMN(name, unset, max) #name ", "
#define REGISTRY_LIMIT_PLACE(name, unset, max)  "?, "
#define REGISTRY_LIMIT_COLUMNS                                                                 \
    TENANT_LIMITS_EACH(REGISTRY_LIMIT_COLUMN) "reuse, images, network"
#define REGISTRY_LIMIT_PLACES TENANT_LIMITS_EACH(REGISTRY_LIMIT_PLACE) "?, ?, ?"
/* After they were read: a reuse that nobody knows is none at all. */
void registry_mend_limits(struct tenant_limits *limits);

/* As registry_place_put, within a transaction. */
int registry_place_put_step(struct registry *registry, enum registry_place which,
                            const struct change_place *place, struct err *err);

/*
 * Under which name this daemon's rows of the audit are a cluster's, which is set once, before
 * there is a second thread; "": they are its own.
 */
const char *registry_audit_node(const struct registry *registry);
void registry_set_audit_node(struct registry *registry, const char *node);

/* Takes the lock and runs SQL text that gives no rows anybody wants. 0 or -EIO. */
int registry_execute(struct registry *registry, const char *sql, const char *what,
                     struct err *err);

/* -EIO with SQLite's words of a statement that failed, with the lock of its connection. */
int registry_error(struct registry *registry, enum registry_part part, unsigned which,
                   struct err *err, const char *what);

#endif
