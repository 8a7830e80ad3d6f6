/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/schema_block.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

#define FENCE_MIN   3u
#define INDENT_MAX  3u /* of a heading or a fence, as Markdown has it */
#define HEADING_MAX 6u

struct line {
    const char *text; /* without the space around it */
    size_t len;
    size_t indent;
};

/* Cuts the next line off. */
static struct line next_line(const char *text, size_t len, size_t *at)
{
    struct text_span rest = {text + *at, len - *at}, whole;
    struct line line;

    (void)text_take_line(&rest, &whole);
    *at = len - rest.len;
    line = (struct line){whole.text, whole.len, 0};
    while (line.len > 0 && strchr(" \t", line.text[0])) {
        line.indent += line.text[0] == '\t' ? INDENT_MAX + 1 : 1;
        line.text++;
        line.len--;
    }
    while (line.len > 0 && strchr(" \t\r", line.text[line.len - 1]))
        line.len--;
    return line;
}

/* How often it begins with the character. */
static size_t count(const struct line *line, char c)
{
    size_t n = 0;

    while (n < line->len && line->text[n] == c)
        n++;
    return n;
}

/* How long the fence is that the line begins with; 0: none. */
static size_t fence_of(const struct line *line)
{
    size_t n = line->len > 0 && strchr("`~", line->text[0]) ? count(line, line->text[0]) : 0;

    return n >= FENCE_MIN && line->indent <= INDENT_MAX ? n : 0;
}

static bool is_heading(const struct line *line)
{
    size_t n = count(line, '#');

    return n > 0 && n <= HEADING_MAX && line->indent <= INDENT_MAX &&
           (n == line->len || strchr(" \t", line->text[n]));
}

/* "## Input schema", "### `input_schema`:" and the like. */
static bool announces(const struct line *line)
{
    static const char words[] = "inputschema";
    size_t n = 0;

    for (size_t i = count(line, '#'); i < line->len; i++) {
        if (strchr(" \t-_`*:#", line->text[i]))
            continue;
        if (n == sizeof(words) - 1 || strncasecmp(&line->text[i], &words[n], 1) != 0)
            return false;
        n++;
    }
    return n == sizeof(words) - 1;
}

static bool is_json(const struct line *line, size_t fence)
{
    size_t at = fence;

    while (at < line->len && strchr(" \t", line->text[at]))
        at++;
    return line->len - at >= 4 && strncasecmp(line->text + at, "json", 4) == 0 &&
           (line->len - at == 4 || strchr(" \t{", line->text[at + 4]));
}

/* Goes past the end of a block. True with the length of its text where it has one. */
static bool pass_block(const char *text, size_t len, const struct line *open, size_t *at,
                       size_t *ret_len)
{
    size_t begin = *at, fence = fence_of(open);

    while (*at < len) {
        size_t before = *at;
        struct line line = next_line(text, len, at);

        if (fence_of(&line) >= fence && count(&line, open->text[0]) == line.len) {
            *ret_len = before - begin;
            return true;
        }
    }
    return false;
}

bool schema_block_find(const char *text, size_t len, const char **ret_block, size_t *ret_len)
{
    bool announced = false;
    size_t at = 0;

    while (at < len) {
        struct line line = next_line(text, len, &at);
        const char *block = text + at;
        size_t fence = fence_of(&line);

        if (is_heading(&line))
            announced = announces(&line);
        if (fence == 0)
            continue;
        if (!pass_block(text, len, &line, &at, ret_len))
            return false;
        if (announced && is_json(&line, fence)) {
            *ret_block = block;
            return true;
        }
    }
    return false;
}
