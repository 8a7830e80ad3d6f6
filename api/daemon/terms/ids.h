/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that nobody can guess: a prefix that says of what, and 128 random bits. Text alone; what
 * an id belongs to is the registry's.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_IDS_H
#define SKILLVM_API_DAEMON_TERMS_IDS_H

#include <stdbool.h>
#include <stddef.h>

#define ID_EXECUTION "exec_"
#define ID_FILE      "file_"
#define ID_FILE_ROW  "fil_" /* what a cluster calls the row of one */
#define ID_KEY       "key_"
#define ID_SESSION   "ses_" /* what a cluster calls the row of one */
#define ID_SKILL     "skl_"
#define ID_TENANT    "ten_"

#define ID_DIGITS 32u /* behind the prefix: lower-case hexadecimal */

/* Writes n random bytes as 2 * n lower-case hexadecimal digits and a NUL. 0 or -EIO. */
int ids_make_digits(size_t n, char *ret);
/* Makes an id in ret, of size bytes. 0; -EIO: there were no random bytes, or it does not fit.
 */
int ids_make(const char *prefix, char *ret, size_t size);
/* True for the prefix and ID_DIGITS digits. */
bool ids_valid(const char *prefix, const char *id);
/*
 * Whether a caller may call a session so: up to LIMIT_SESSION_ID_BYTES letters, digits, ".",
 * "_", ":" and "-", a letter or a digit first. Such a word needs no escaping in a path, and
 * says nothing in a log but itself.
 */
bool ids_session_valid(const char *id);

#endif
