/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer of a daemon says: its JSON is looked at as JSON, in whatever order and form
 * its members are.
 */
#ifndef SKILLVM_TESTS_DAEMON_ANSWER_H
#define SKILLVM_TESTS_DAEMON_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct answer {
    int status;
    char *headers; /* owned */
    char *body;    /* owned, NUL-terminated, chunks joined */
    size_t len;
};

void answer_finish(struct answer *a);

/*
 * Whether a body has a part: where both are JSON, members ("\"status\":\"success\"") that one
 * of its objects has with these values; else a piece of text.
 */
bool answer_has(const struct answer *a, const char *part);
/* How many objects of it have a member of this name. */
unsigned answer_count(const struct answer *a, const char *name);
/* The first member of this name, a number or a text. Fails the test where there is none. */
double answer_number(const struct answer *a, const char *name);
void answer_text(const struct answer *a, const char *name, char *ret, size_t size);
/* The path of the execution that it tells of. */
void answer_execution_path(const struct answer *a, char *ret, size_t size);

#endif
