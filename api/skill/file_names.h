/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files that strangers choose: checking, cleaning and showing them. Pure text; nothing
 * here touches a file system.
 */
#ifndef SKILLVM_API_SKILL_FILE_NAMES_H
#define SKILLVM_API_SKILL_FILE_NAMES_H

#include "base/err.h"

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#define NAMES_PATH_MAX      1024u /* bytes of a whole name */
#define NAMES_COMPONENT_MAX 255u  /* bytes between two slashes */
#define NAMES_DEPTH_MAX     32u   /* components */

#define NAMES_SHOWN_MAX 128u
struct names_shown {
    char text[NAMES_SHOWN_MAX];
};

/*
 * The name as a person may see it: control and non-UTF-8 bytes as \xNN, a long one cut with
 * "...". A value, for a message: names_shown(name).text.
 */
struct names_shown names_shown(const char *name);

/* err_set() with 'entry "name": ' before the message. */
int names_refuse(struct err *err, int code, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Checks an archive member's name and writes it without "./", doubled and trailing slashes; the
 * root itself becomes "". 0, or -EINVAL with the rule that was broken: empty, absolute, "..",
 * backslash, control byte, not UTF-8, or over one of the limits above.
 */
int names_clean(const char *raw, char ret_name[NAMES_PATH_MAX + 1], struct err *err);

/*
 * A path from a folder, "." and ".." resolved: the first len bytes of the folder's, none or up
 * to its slash, which were checked. False where it leads out of the root, or is too long.
 */
bool names_resolve(const char *folder, size_t len, const char *path,
                   char ret_path[NAMES_PATH_MAX + 1]);
/*
 * The C.UTF-8 locale, made once, for uselocale(3): libarchive converts names by the thread's. 0
 * where there is none, with which uselocale changes nothing.
 */
locale_t names_locale(void);

/*
 * Compares two valid UTF-8 names without regard to case (simple case folding by code point, in
 * the C.UTF-8 locale where there is one, else ASCII only): <0, 0, >0.
 */
int names_case_compare(const char *a, const char *b);

#endif
