/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What chosen wheels hold, as one canonical tar, in the places where an installer would put it:
 * a folder for sys.path with programs in bin. Nothing is run, and no entry becomes a path on
 * the host.
 */
#ifndef SKILLVM_API_WHEELS_LAYER_H
#define SKILLVM_API_WHEELS_LAYER_H

#include "api/skill/archive.h"
#include "api/skill/image_manifest.h"

struct layer;

/* A layer without wheels. limits and spool are borrowed. NULL without memory. */
struct layer *layer_create(const struct archive_limits *limits,
                           const struct archive_spool *spool);
/*
 * Adds what a wheel holds, by the rules of archive.h. fd is a regular file; file is its name
 * for messages. 0; -EINVAL or -EFBIG with the wheel and the rule; -errno.
 */
int layer_add(struct layer *layer, int fd, const char *file, struct err *err);
/*
 * Writes the tar to tar_fd. What several wheels have is the first one's. As of
 * skill_archive_ingest.
 */
int layer_write(struct layer *layer, int tar_fd, char ret_digest[SHA256_HEX_SIZE],
                uint64_t *ret_bytes, struct err *err);
/* NULL is fine. */
void layer_destroy(struct layer *layer);

/*
 * What the tar of a layer brings: modules, packages and programs, for needs.h. 0; -errno. The
 * caller finishes *ret on success.
 */
int layer_look(int tar_fd, struct image_manifest *ret, struct err *err);

#endif
