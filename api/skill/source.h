/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a stranger's archive as libarchive's reader gets them: the file itself, or what
 * comes out of its one compression (gzip, bzip2, xz or zstd).
 * A reader may consume any amount between two entries without telling: what it skips, what it
 * looks for. So what is unpacked is counted here, where it is made, and ends at a limit. It
 * never unpacks a second layer.
 */
#ifndef SKILLVM_API_SKILL_SOURCE_H
#define SKILLVM_API_SKILL_SOURCE_H

#include "api/skill/archive.h"

struct source;
struct archive; /* libarchive's reader */

/*
 * A source of in_fd (borrowed, its offset too) with size bytes. 0; -EINVAL with err where what
 * looks compressed is not; -ENOMEM.
 */
int source_create(int in_fd, uint64_t size, const struct archive_limits *limits,
                  struct source **ret, struct err *err);
/* Opens a reader, which must end before it, with it. What archive_read_open1() returns. */
int source_open(struct source *source, struct archive *reader);
/* True for what begins with a tar's header, as it is: not where it unpacks to one. */
bool source_is_tar(const struct source *source);
/* True for what begins like a zip's first member. */
bool source_is_zip(const struct source *source);
/* True when it unpacks: it can then be read from its start to its end only. */
bool source_is_packed(const struct source *source);
/*
 * Whether a header is read now: what comes of a tar before it is there ends at 64 KiB, for the
 * reader keeps a map of what is sparse and a list of who may access before it tells of the
 * entry.
 */
void source_expect_header(struct source *source, bool is_expected);
/* Tells of an entry that was found: its headers are no content. */
void source_count_entry(struct source *source);
/* Why the source gave the reader an error: -errno with err, or 0 when it did not. */
int source_failure(const struct source *source, struct err *err);
/*
 * What an archive that expanded to so many bytes breaks: 0, or -EFBIG with err. It must be
 * asked before the bytes are kept.
 */
int source_check_growth(const struct archive_limits *limits, uint64_t archive_bytes,
                        uint64_t expanded, struct err *err);
/* NULL is fine. */
void source_destroy(struct source *source);

#endif
