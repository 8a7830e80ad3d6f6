/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library does not say of a text. */
#ifndef SKILLVM_BASE_TEXT_H
#define SKILLVM_BASE_TEXT_H

#include <stdbool.h>

bool text_ends_with(const char *text, const char *end);
/* Whether word is one of the words, which any of the separators part. */
bool text_has_word(const char *words, const char *separators, const char *word);

#endif
