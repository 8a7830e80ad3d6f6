/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a JavaScript source of a stranger's: names, strings, templates, and what opens
 * and closes. It knows no grammar but what tells a division from a regular expression and a
 * block from an object, and where that is not enough the likelier of the two is taken. What
 * breaks the rules ends it: then the current token is the end, for good, and error says so. Its
 * time is linear, its memory constant; a copy goes on by itself, which is how to look ahead.
 */
#ifndef SKILLVM_API_SKILL_JS_TOKENS_H
#define SKILLVM_API_SKILL_JS_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#define JS_DEPTH_MAX 200u /* open at once */

/* A template is a string where it has no fields, else each of its parts is something other. */
enum js_token { JS_NAME, JS_STRING, JS_OTHER, JS_END };

/* What may come next. */
enum js_next { JS_STATEMENT, JS_EXPRESSION, JS_OPERATOR };

/* Begins with at and end set, and counted at at. */
struct js_tokens {
    const char *at;
    const char *end;

    enum js_token kind; /* of the current token */
    const char *token;  /* a string with its quotes */
    size_t token_len;
    bool member; /* it stands behind a dot */

    unsigned depth; /* open brackets and fields of templates, behind the current token */
    char open[JS_DEPTH_MAX];
    enum js_next next;
    bool head;             /* what opens now is the head of an if or a loop */
    const char *undivided; /* before this no regular expression ends */

    const char *counted; /* up to here lines were counted */
    unsigned lines;
    int error; /* the first failure; nothing but the end comes after it */
};

/* Makes the next token the current one. */
void js_advance(struct js_tokens *t);
void js_fail(struct js_tokens *t, int error);

bool js_at_word(const struct js_tokens *t, const char *word);
bool js_at_sign(const struct js_tokens *t, const char *sign);
/* The line of the current token, from 1. */
unsigned js_line(struct js_tokens *t);

#endif
