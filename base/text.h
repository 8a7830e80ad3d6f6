/* SPDX-License-Identifier: Apache-2.0 */
/* What the C library does not say of a text. */
#ifndef SKILLVM_BASE_TEXT_H
#define SKILLVM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text, which no NUL ends. */
struct text_span {
    const char *text;
    size_t len;
};

/* Without control characters of ASCII, which a terminal or a log would act on. */
bool text_is_plain(const char *text);
bool text_ends_with(const char *text, const char *end);
bool text_begins_with(struct text_span span, const char *begin);
/* Copies what fits of a text, NULL being "". False where that is not all of it. */
bool text_copy(char *ret, size_t size, const char *text);
/* Whether word is one of the words, which any of the separators part. */
bool text_has_word(const char *words, const char *separators, const char *word);
/*
 * The number behind name and a space at the start of a line, as the kernel writes them. False
 * where no line begins so.
 */
bool text_find_number(const char *text, const char *name, uint64_t *ret);
/* Cuts off the word that a text ends in, which may not be all of it. */
void text_cut_word(char *text);

/*
 * Takes the next line off *rest: up to "\n" or "\r\n", which is not in it, or to the end. False
 * where nothing is left, and *ret_line is empty.
 */
bool text_take_line(struct text_span *rest, struct text_span *ret_line);
/* Without the characters of set at both ends. */
struct text_span text_trim(struct text_span span, const char *set);

/* FNV-1a of 64 bits: what some bytes make of a hash, of which the first is TEXT_HASH. For names
   of what is told to others, not for tables that a stranger fills. */
#define TEXT_HASH 0xcbf29ce484222325u
uint64_t text_hash(uint64_t hash, const char *bytes, size_t len);

#endif
