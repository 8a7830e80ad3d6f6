/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The central directory of a zip, walked before libarchive reads it: that takes all of it into
 * memory before it tells of the first entry, and its entries cost some 150 bytes each. Walked
 * where libarchive will find it, and refused where it would have to be searched for.
 */
#ifndef SKILLVM_API_SKILL_ZIP_DIRECTORY_H
#define SKILLVM_API_SKILL_ZIP_DIRECTORY_H

#include "base/err.h"

#include <stdint.h>

struct archive; /* libarchive's reader */

/*
 * Counts the entries of the zip in fd, of size bytes, to *ret_n. 0, also for a directory that
 * ends too early, which is libarchive's to report; -EFBIG over max; -EINVAL: it is not where it
 * should be, or a name in it holds a NUL, at which libarchive would end it; -ENOENT, without a
 * message: nothing here ends as a zip does; -ENOMEM.
 */
int zip_directory_check(int fd, uint64_t size, uint32_t max, uint32_t *ret_n, struct err *err);

/*
 * Whether the entry that reader is at, name, is compressed in a way that takes no more memory
 * than it unpacks to (not PPMd, which takes what its first bytes say). Of a zip what its own
 * header says, by which libarchive unpacks whatever the directory says; all is well of a tar.
 * 0, or -EINVAL.
 */
int zip_method_check(struct archive *reader, const char *name, struct err *err);

#endif
