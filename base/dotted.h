/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dotted names of Python modules where they are handed from one program to another: a recipe's
 * list, a profile's name, a frame to a guest. ASCII only: no module worth a snapshot is called
 * otherwise, and so that a name is the same bytes everywhere.
 */
#ifndef SKILLVM_BASE_DOTTED_H
#define SKILLVM_BASE_DOTTED_H

#include <stdbool.h>
#include <stddef.h>

#define DOTTED_NAME_MAX 64u

/* True for identifiers joined by single dots, 1 to DOTTED_NAME_MAX bytes in all. */
bool dotted_is_name(const char *text, size_t len);

#endif
