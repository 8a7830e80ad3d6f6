/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error that reaches a person: an errno and a message that names what was wrong.
 * Functions take it last, set it once on failure and leave it untouched on success.
 * It must never allocate: it has to work when memory is what ran out.
 */
#ifndef SKILLVM_BASE_ERR_H
#define SKILLVM_BASE_ERR_H

#define ERR_MESSAGE_MAX 512

struct err {
    int code; /* positive errno; 0 means nothing was set */
    char message[ERR_MESSAGE_MAX];
};

/*
 * Sets code (a positive errno) and the formatted message, unless err is NULL or already set:
 * the first cause is the one worth telling. Always returns -code, so that
 * `return err_set(err, EINVAL, "…")` reads well.
 */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* err_set for memory that ran out. */
int err_no_memory(struct err *err);

/* err_set with ": strerror(code)" appended. code is a positive errno. */
int err_set_errno(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before a message already set. Keeps the code; no effect where none is set. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * clang's analyzer sees one file at a time: this tells it that all three return a negative
 * number, so that it does not follow the path on which a failed function went on as if it had
 * not.
 */
#ifdef __clang_analyzer__
#define err_set(err, code, ...)       ((void)err_set(err, code, __VA_ARGS__), -1)
#define err_set_errno(err, code, ...) ((void)err_set_errno(err, code, __VA_ARGS__), -1)
#define err_no_memory(err)            ((void)err_no_memory(err), -1)
#endif

#endif
