/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec of the `state` file of a snapshot: a header and tagged sections, each with a
 * version, a length and a CRC (docs/snapshot-format.md). It knows nothing of what the sections
 * mean: the caller says which ones there are. It must never trust a length, and never accept a
 * file that is not whole: every kind appears exactly once or the file is refused.
 *
 *   0   8 bytes  "SKVMSTAT"
 *   8   u32      STATE_FORMAT
 *   12  u32      number of sections
 *   16           sections: u32 tag, u32 version, u32 length, u32 CRC-32 of the first three
 *                fields and the payload, then the payload
 */
#ifndef SKILLVM_VMM_STATE_H
#define SKILLVM_VMM_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#define STATE_FORMAT       1u
#define STATE_HEADER_SIZE  16u
#define STATE_SECTION_SIZE 16u
#define STATE_SECTIONS_MAX 48u
/* Devices and one vCPU need tens of KiB; XSAVE of a large CPU about 11 KiB more. */
#define STATE_SIZE_MAX (1u << 20)

/* A tag is four printable characters, the first in the lowest byte. */
#define STATE_TAG(a, b, c, d)                                                                  \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* One kind of section: its tag, the version written and read, and its name in messages. */
struct state_kind {
    uint32_t tag;
    uint32_t version;
    const char *name;
};

/* The list of sections a file must have, each exactly once. */
struct state_schema {
    const struct state_kind *kinds; /* borrowed */
    size_t n_kinds;                 /* at most STATE_SECTIONS_MAX */
};

/* Sections found by state_parse, in the order of the schema. Borrows the file's bytes. */
struct state {
    const struct state_schema *schema;
    struct {
        const uint8_t *data;
        size_t len;
    } sections[STATE_SECTIONS_MAX];
};

/* Builds a file in memory. */
struct state_writer {
    const struct state_schema *schema;
    struct buf out; /* owned: state_writer_finish */
    uint32_t n_sections;
};

/* An empty file for schema, which must outlive the writer. 0, -EINVAL or -ENOMEM. */
int state_writer_init(struct state_writer *w, const struct state_schema *schema,
                      struct err *err);
/*
 * Adds the section tag with len bytes. 0; -EINVAL when the schema has no such tag; -E2BIG past
 * STATE_SIZE_MAX; -ENOMEM.
 */
int state_add(struct state_writer *w, uint32_t tag, const void *data, size_t len,
              struct err *err);
/*
 * Completes the header. The file is w->out, still owned by the writer. 0, or what
 * state_parse says of a file that would not load again.
 */
int state_writer_complete(struct state_writer *w, struct err *err);
void state_writer_finish(struct state_writer *w);
#define _cleanup_state_writer_ __attribute__((cleanup(state_writer_finish)))

/*
 * Checks a whole file against schema. data is borrowed by *ret_state. 0, or -EINVAL with a
 * message that names the section: bad magic, other format, unknown, duplicate or missing
 * section, other version, bad length, bad CRC, bytes after the end.
 */
int state_parse(const void *data, size_t len, const struct state_schema *schema,
                struct state *ret_state, struct err *err);

/* A reader over the section tag, which the schema must have (an empty one otherwise). */
struct bytes_reader state_section(const struct state *state, uint32_t tag);

/*
 * Copies the section tag, which must be exactly len bytes, to out. 0 or -EINVAL naming it.
 */
int state_get_blob(const struct state *state, uint32_t tag, void *out, size_t len,
                   struct err *err);
/*
 * Says that the content of section tag is wrong. Always -EINVAL.
 */
int state_bad_section(const struct state *state, uint32_t tag, const char *what,
                      struct err *err);

#endif
