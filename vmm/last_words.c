/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/last_words.h"

#include <stddef.h>
#include <unistd.h>

void last_words_keep(struct last_words *w, char c)
{
    /* Of "\r\n", which ends a console's line, the second is enough. */
    if (c != '\r')
        w->text[w->n++ % LAST_WORDS_BYTES] = c;
}

void last_words_tell(const struct last_words *w, int fd)
{
    char text[LAST_WORDS_BYTES + 1];
    uint64_t from = w->n > LAST_WORDS_BYTES ? w->n - LAST_WORDS_BYTES : 0;
    unsigned ends = 0;
    size_t len = 0, start;

    while (from < w->n)
        text[len++] = w->text[from++ % LAST_WORDS_BYTES];
    if (len == 0)
        return;
    if (text[len - 1] != '\n')
        text[len++] = '\n';
    for (start = len; start > 0; start--)
        if (text[start - 1] == '\n' && ends++ == LAST_WORDS_LINES)
            break;
    if (write(fd, text + start, len - start) < 0)
        return;
}
