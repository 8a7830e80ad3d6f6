/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a Python source of a stranger's: logical lines, indentation, strings, names. It
 * knows no expressions and no statements. What breaks the rules ends it: then the current token
 * is the end, for good, and error says so. Its time is linear, its memory constant; a copy goes
 * on by itself, which is how to look ahead.
 */
#ifndef SKILLVM_API_SKILL_PYTHON_TOKENS_H
#define SKILLVM_API_SKILL_PYTHON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum python_token { PYTHON_NAME, PYTHON_STRING, PYTHON_OTHER, PYTHON_LINE_END, PYTHON_END };

/* Begins with at and end set, line_begins true, and counted and token at at. */
struct python_tokens {
    const char *at;
    const char *end;
    bool line_begins;  /* the next token is the first of its logical line */
    unsigned brackets; /* open */
    size_t column;     /* of the logical line */

    enum python_token kind; /* of the current token */
    const char *token;      /* a string with its quotes, but without its prefix */
    size_t token_len;

    const char *counted; /* up to here lines were counted */
    unsigned lines;
    int error; /* the first failure; nothing but the end comes after it */
};

/* Makes the next token the current one. */
void python_advance(struct python_tokens *s);
void python_fail(struct python_tokens *s, int error);
/* Fails with -EINVAL unless good. */
void python_require(struct python_tokens *s, bool good);

bool python_at_word(const struct python_tokens *s, const char *word);
bool python_at_sign(const struct python_tokens *s, char sign);
bool python_at_line_end(const struct python_tokens *s);
bool python_at_statement_end(const struct python_tokens *s);
bool python_is_name_byte(char c);
/* How many bytes of a line's end are at p: 0 where there is none. */
size_t python_newline(const struct python_tokens *s, const char *p);
/* The line of the current token, from 1. */
unsigned python_line(struct python_tokens *s);

#endif
