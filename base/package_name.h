/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Python's packages, as whoever compares them has to write them. */
#ifndef SKILLVM_BASE_PACKAGE_NAME_H
#define SKILLVM_BASE_PACKAGE_NAME_H

#include <stddef.h>

/*
 * Writes a name in the form of PEP 503: lower case, runs of "-", "_" and "." one "-". 0;
 * -EINVAL for what is no name, or one of size bytes or more.
 */
int package_name_clean(const char *text, size_t len, char *ret, size_t size);

#endif
