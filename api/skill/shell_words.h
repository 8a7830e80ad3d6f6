/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a shell's text and what stands between them: a part of shell_scan.c, which it
 * calls back for the commands within a word. Whatever is not ended is -EINVAL.
 */
#ifndef SKILLVM_API_SKILL_SHELL_WORDS_H
#define SKILLVM_API_SKILL_SHELL_WORDS_H

#include "api/skill/shell_scan.h"

#define SHELL_HEREDOCS_MAX 8u /* that begin on one line */

/* What ends a list of commands, apart from the characters themselves. */
enum shell_list_end { SHELL_TEXT = 0, SHELL_CASE = 1 };

struct shell_word {
    char text[SHELL_NAME_MAX + 32]; /* without quotes; cut, and then not literal */
    size_t len;
    size_t known; /* up to here it is what stands there */
    bool literal; /* all of it is known, and it fits */
    bool quoted;  /* some of it is: then it is no reserved word */
};

struct shell_heredoc {
    struct shell_word end;
    bool tabs; /* before its end */
};

struct shell_scan {
    const char *at;
    const char *end;
    const char *counted; /* up to here lines were counted */
    unsigned lines;
    unsigned depth;
    unsigned backticks; /* open */
    struct shell_heredoc heredocs[SHELL_HEREDOCS_MAX];
    size_t n_heredocs;
    shell_found_fn found; /* NULL: only check */
    void *user;
};

/* Of shell_scan.c: commands up to the character end, or of SHELL_CASE to the end of a branch.
 */
int shell_scan_list(struct shell_scan *s, int end, bool *ret_esac);

/* Whether this text is next; the next character, 0 at the end. */
bool shell_at(const struct shell_scan *s, const char *text);
int shell_peek(const struct shell_scan *s);
/* One level deeper, which the caller leaves again: 0, or -EINVAL where that is too deep. */
int shell_enter(struct shell_scan *s);
/* A list of commands in parentheses, from behind the first one. */
int shell_scan_inner(struct shell_scan *s, int end);
/* Past the character that ends what began with one of two. */
int shell_skip_balanced(struct shell_scan *s, char open, char close);

bool shell_word_ends(const struct shell_scan *s);
int shell_read_word(struct shell_scan *s, struct shell_word *ret);
/* NAME=, NAME+= and NAME[…]= at the start of a word. */
bool shell_is_assignment(const struct shell_word *word);

void shell_skip_blanks(struct shell_scan *s);
void shell_skip_line(struct shell_scan *s);
/* White space of all kinds, and comments. */
void shell_skip_lines(struct shell_scan *s);
/* Passes over the texts that were announced on the line that ends here. */
void shell_skip_heredocs(struct shell_scan *s);
/* From the sign on, with what it names. */
int shell_skip_redirection(struct shell_scan *s);

#endif
