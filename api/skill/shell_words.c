/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/shell_words.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

bool shell_at(const struct shell_scan *s, const char *text)
{
    size_t len = strlen(text);

    return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

int shell_peek(const struct shell_scan *s)
{
    return s->at < s->end ? (unsigned char)*s->at : 0;
}

int shell_enter(struct shell_scan *s)
{
    return ++s->depth <= SHELL_DEPTH_MAX ? 0 : -EINVAL;
}

/* Past the character that ends what begins with one of two. */
int shell_skip_balanced(struct shell_scan *s, char open, char close)
{
    unsigned depth = 1;

    while (s->at < s->end) {
        char c = *s->at++;

        if (c == '\\' && s->at < s->end)
            s->at++;
        else if (c == '\'' || c == '"') {
            while (s->at < s->end && *s->at != c)
                s->at += c == '"' && *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
            s->at += s->at < s->end;
        } else if (c == open)
            depth++;
        else if (c == close && --depth == 0)
            return 0;
    }
    return -EINVAL;
}

/* A list of commands within a word or in parentheses, up to its end. */
int shell_scan_inner(struct shell_scan *s, int end)
{
    size_t heredocs = s->n_heredocs;
    int r;

    if (shell_enter(s) < 0)
        return -EINVAL;
    r = shell_scan_list(s, end, NULL);
    s->depth--;
    s->n_heredocs = heredocs < s->n_heredocs ? heredocs : s->n_heredocs;
    return r;
}

static int scan_backticks(struct shell_scan *s)
{
    int r;

    s->at++;
    s->backticks++;
    r = shell_scan_inner(s, '`');
    s->backticks--;
    return r;
}

/* What begins with a dollar sign. */
static int skip_expansion(struct shell_scan *s)
{
    s->at++;
    if (shell_at(s, "((")) {
        s->at += 2;
        return shell_skip_balanced(s, '(', ')') < 0 || shell_peek(s) != ')' ? -EINVAL
                                                                            : (s->at++, 0);
    }
    if (shell_peek(s) == '(') {
        s->at++;
        return shell_scan_inner(s, ')');
    }
    if (shell_peek(s) == '{') {
        s->at++;
        return shell_skip_balanced(s, '{', '}');
    }
    return 0;
}

/* What comes now is known only when it runs, or has no room. */
static void end_literal(struct shell_word *word)
{
    if (word->literal)
        word->known = word->len;
    word->literal = false;
}

static void add(struct shell_word *word, char c)
{
    if (word->len + 1 < sizeof(word->text))
        word->text[word->len++] = c;
    else
        end_literal(word);
}

static int read_quotes(struct shell_scan *s, struct shell_word *word)
{
    char quote = *s->at++;
    int r;

    word->quoted = true;
    while (s->at < s->end) {
        char c = *s->at;

        if (c == quote) {
            s->at++;
            return 0;
        }
        if (quote == '"' && (c == '$' || (c == '`' && s->backticks == 0))) {
            end_literal(word);
            r = c == '$' ? skip_expansion(s) : scan_backticks(s);
            if (r < 0)
                return r;
            continue;
        }
        if (quote == '"' && c == '\\' && s->at + 1 < s->end)
            c = *++s->at;
        add(word, c);
        s->at++;
    }
    return -EINVAL;
}

/* One piece of a word at a character that does not end it. */
static int read_piece(struct shell_scan *s, struct shell_word *word)
{
    char c = *s->at;

    if (c == '\'' || c == '"')
        return read_quotes(s, word);
    if (c == '$') {
        end_literal(word);
        return skip_expansion(s);
    }
    if (c == '`') {
        end_literal(word);
        return scan_backticks(s);
    }
    if (c == '\\' && s->at + 1 < s->end) {
        s->at++;
        if (*s->at == '\n') {
            s->at++;
            return 0;
        }
        word->quoted = true;
    } else if (c == '*' || c == '?' || c == '~') {
        end_literal(word);
    }
    add(word, *s->at++);
    return 0;
}

bool shell_word_ends(const struct shell_scan *s)
{
    return s->at == s->end || strchr(" \t\r\n;&|()<>", *s->at) ||
           (*s->at == '`' && s->backticks > 0);
}

/* NAME=, NAME+= and NAME[…]= at the start of a word. */
bool shell_is_assignment(const struct shell_word *word)
{
    size_t n = 0;

    while (n < word->len && (isalnum((unsigned char)word->text[n]) || word->text[n] == '_'))
        n++;
    if (n == 0 || isdigit((unsigned char)word->text[0]))
        return false;
    return n < word->len && (word->text[n] == '=' || word->text[n] == '[' ||
                             (word->text[n] == '+' && word->text[n + 1] == '='));
}

int shell_read_word(struct shell_scan *s, struct shell_word *ret)
{
    *ret = (struct shell_word){.literal = true};
    while (!shell_word_ends(s)) {
        int r = read_piece(s, ret);

        if (r < 0)
            return r;
    }
    ret->text[ret->len] = '\0';
    if (ret->literal)
        ret->known = ret->len;
    /* The elements of an array. */
    if (shell_peek(s) == '(' && ret->len > 0 && ret->text[ret->len - 1] == '=' &&
        shell_is_assignment(ret)) {
        s->at++;
        return shell_skip_balanced(s, '(', ')');
    }
    return 0;
}

void shell_skip_blanks(struct shell_scan *s)
{
    for (;;) {
        if (shell_peek(s) == ' ' || shell_peek(s) == '\t' || shell_peek(s) == '\r')
            s->at++;
        else if (shell_at(s, "\\\n"))
            s->at += 2;
        else
            return;
    }
}

void shell_skip_line(struct shell_scan *s)
{
    while (s->at < s->end && *s->at != '\n')
        s->at++;
}

/* Passes over the texts that were announced on the line that ends here. */
void shell_skip_heredocs(struct shell_scan *s)
{
    for (size_t i = 0; i < s->n_heredocs; i++) {
        const struct shell_heredoc *heredoc = &s->heredocs[i];

        while (s->at < s->end) {
            const char *line = s->at, *end;

            shell_skip_line(s);
            end = s->at;
            s->at += s->at < s->end;
            while (heredoc->tabs && line < end && *line == '\t')
                line++;
            if ((size_t)(end - line) == heredoc->end.len &&
                memcmp(line, heredoc->end.text, heredoc->end.len) == 0)
                break;
        }
    }
    s->n_heredocs = 0;
}

/* From the sign on, with what it names. */
int shell_skip_redirection(struct shell_scan *s)
{
    struct shell_heredoc heredoc = {.tabs = false};
    bool here = shell_at(s, "<<") && !shell_at(s, "<<<");
    struct shell_word word;
    int r;

    if (shell_at(s, "<(") || shell_at(s, ">(")) {
        s->at += 2;
        return shell_scan_inner(s, ')');
    }
    if (here) {
        s->at += 2;
        heredoc.tabs = shell_peek(s) == '-';
        s->at += heredoc.tabs;
    }
    while (!here && shell_peek(s) && strchr("<>&|", shell_peek(s)))
        s->at++;
    shell_skip_blanks(s);
    if (shell_at(s, "<(") || shell_at(s, ">("))
        return shell_skip_redirection(s);
    r = shell_read_word(s, here ? &heredoc.end : &word);
    if (r < 0 || !here)
        return r;
    if (!heredoc.end.literal || s->n_heredocs == SHELL_HEREDOCS_MAX)
        return -EINVAL;
    s->heredocs[s->n_heredocs++] = heredoc;
    return 0;
}

/* White space of all kinds, and comments. */
void shell_skip_lines(struct shell_scan *s)
{
    for (;;) {
        shell_skip_blanks(s);
        if (shell_peek(s) == '#')
            shell_skip_line(s);
        else if (shell_peek(s) == '\n')
            s->at++;
        else
            return;
    }
}
