/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest's kernel wrote to its console last, in a machine that has none: a kernel that
 * stops says why, and who runs the daemon is to hear it. Nothing of it is read back by the
 * guest.
 */
#ifndef SKILLVM_VMM_LAST_WORDS_H
#define SKILLVM_VMM_LAST_WORDS_H

#include <stdint.h>

/* What the log of a machine takes of it, and has room for (api/daemon/machine/vm.c). */
#define LAST_WORDS_LINES 12u
#define LAST_WORDS_BYTES 2048u

struct last_words {
    uint64_t n; /* characters so far, of which the last ones are held; 0: none */
    char text[LAST_WORDS_BYTES];
};

void last_words_keep(struct last_words *w, char c);
/* Writes the last lines to fd, LAST_WORDS_LINES at most, each ended; of the first the end,
   where that is all that is held. What fd does not take is lost. */
void last_words_tell(const struct last_words *w, int fd);

#endif
