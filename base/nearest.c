/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * How many letters were added, left out, changed, or swapped with their neighbour. By rows of
 * the table of distances between beginnings of the two: one for each letter of a.
 */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][NEAREST_NAME_MAX + 1];
    const size_t a_len = strlen(a), b_len = strlen(b);

    for (unsigned j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (unsigned j = 1; j <= b_len; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

struct nearest nearest_init(const char *word)
{
    const size_t len = strlen(word);

    if (len > NEAREST_NAME_MAX)
        return (struct nearest){.word = word};
    return (struct nearest){.word = word, .below = 2 + (unsigned)(len < 12 ? len / 4 : 2)};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    const size_t len = strlen(name);
    unsigned mistakes;

    if (nearest->below == 0 || len > NEAREST_NAME_MAX)
        return;
    mistakes = distance(nearest->word, name);
    /* As many mistakes as letters: another word. */
    if (mistakes >= nearest->below || mistakes >= len)
        return;
    nearest->name = name;
    nearest->below = mistakes;
}

const char *nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE])
{
    out[0] = '\0';
    if (nearest->name && strcmp(nearest->name, nearest->word) != 0)
        (void)snprintf(out, NEAREST_HINT_SIZE, "; did you mean \"%s\"?", nearest->name);
    return out;
}
