/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A skill as a read-only disk: a head, and the canonical tar behind it as it is. The head is
 * the names, modes and places of a file system (EROFS, blocks of 512 bytes), and the content of
 * each file is where the tar has it. So nothing is unpacked or stored twice, and a guest reads
 * what it looks at and no more. It must never point past the tar.
 */
#ifndef SKILLVM_API_SKILL_DISK_H
#define SKILLVM_API_SKILL_DISK_H

#include "api/skill/archive.h"
#include "base/buf.h"

#include <stdint.h>

/*
 * Appends the head of an archive that was ingested or reloaded to an empty buffer: a
 * multiple of 512 bytes. What a guest finds is what it would have unpacked at that time (since
 * the epoch). 0; -EINVAL: of no such archive, or of one whose names no file system takes;
 * -E2BIG or -ENOMEM of the buffer.
 */
int skill_disk_put_head(const struct skill_archive *archive, uint64_t tar_bytes,
                        uint64_t time_ns, struct buf *head);

#endif
