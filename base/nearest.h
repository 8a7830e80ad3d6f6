/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of some names a misspelt word stands for: the one with the fewest letters added, left
 * out, changed or swapped with their neighbour. It never names one that is not close.
 */
#ifndef SKILLVM_BASE_NEAREST_H
#define SKILLVM_BASE_NEAREST_H

#define NEAREST_NAME_MAX  64u /* bytes of a word or name; what is longer is near to nothing */
#define NEAREST_HINT_SIZE 96u

struct nearest {
    const char *word; /* borrowed */
    const char *name; /* borrowed: the nearest of those offered; NULL: none is near */
    unsigned below;   /* the next one has to have fewer mistakes than this */
};

struct nearest nearest_init(const char *word);
/* Offers a name, which has to live as long; of two that are as near the first one stays. */
void nearest_offer(struct nearest *nearest, const char *name);
/*
 * The end of a message, "; did you mean \"NAME\"?", or "" where none is near, or the nearest is
 * the word itself. Returns out.
 */
const char *nearest_hint(const struct nearest *nearest, char out[NEAREST_HINT_SIZE]);

#endif
