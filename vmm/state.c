/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/state.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32.h"

static const char magic[8] = {'S', 'K', 'V', 'M', 'S', 'T', 'A', 'T'};

/* The index of tag in the schema, or n_kinds. */
static size_t find_kind(const struct state_schema *schema, uint32_t tag)
{
    size_t i;

    for (i = 0; i < schema->n_kinds; i++) {
        if (schema->kinds[i].tag == tag)
            break;
    }
    return i;
}

/* The CRC covers the tag, version and length too, so a damaged one is caught as well. */
static uint32_t section_crc(const uint8_t *head, const uint8_t *payload, size_t len)
{
    return crc32_update(crc32_update(0, head, 12), payload, len);
}

int state_writer_init(struct state_writer *w, const struct state_schema *schema,
                      struct err *err)
{
    static const uint8_t room[STATE_HEADER_SIZE];

    *w = (struct state_writer){.schema = schema, .out = buf_init(STATE_SIZE_MAX)};
    if (schema->n_kinds > STATE_SECTIONS_MAX)
        return err_set(err, EINVAL, "state: %zu kinds of sections", schema->n_kinds);
    if (buf_append(&w->out, room, sizeof(room)) < 0)
        return err_set(err, ENOMEM, "state: no memory");
    return 0;
}

int state_add(struct state_writer *w, uint32_t tag, const void *data, size_t len,
              struct err *err)
{
    uint8_t head[STATE_SECTION_SIZE];
    struct bytes_writer b = bytes_writer_init(head, sizeof(head));
    size_t kind = find_kind(w->schema, tag);
    int r;

    if (kind == w->schema->n_kinds)
        return err_set(err, EINVAL, "state: section %08x is not in the schema", tag);
    r = len > STATE_SIZE_MAX ? -E2BIG : buf_reserve(&w->out, sizeof(head) + len);
    if (r < 0)
        return err_set_errno(err, -r, "state section %s: %zu bytes",
                             w->schema->kinds[kind].name, len);
    bytes_put_u32(&b, tag);
    bytes_put_u32(&b, w->schema->kinds[kind].version);
    bytes_put_u32(&b, (uint32_t)len);
    bytes_put_u32(&b, section_crc(head, data, len));
    r = buf_append(&w->out, head, sizeof(head));
    if (r >= 0 && len > 0)
        r = buf_append(&w->out, data, len);
    if (r < 0)
        return err_set_errno(err, -r, "state section %s", w->schema->kinds[kind].name);
    w->n_sections++;
    return 0;
}

int state_writer_complete(struct state_writer *w, struct err *err)
{
    struct bytes_writer b = bytes_writer_init(w->out.data, STATE_HEADER_SIZE);
    struct state check;

    bytes_put(&b, magic, sizeof(magic));
    bytes_put_u32(&b, STATE_FORMAT);
    bytes_put_u32(&b, w->n_sections);
    return state_parse(w->out.data, w->out.len, w->schema, &check, err);
}

void state_writer_finish(struct state_writer *w)
{
    buf_finish(&w->out);
}

/* Reads one section at r into state. */
static int parse_section(struct bytes_reader *r, struct state *state, struct err *err)
{
    const struct state_schema *schema = state->schema;
    const uint8_t *head = bytes_take(r, STATE_SECTION_SIZE);
    struct bytes_reader h = bytes_reader_init(head, head ? STATE_SECTION_SIZE : 0);
    uint32_t tag = bytes_get_u32(&h);
    uint32_t version = bytes_get_u32(&h);
    uint32_t len = bytes_get_u32(&h);
    uint32_t crc = bytes_get_u32(&h);
    const struct state_kind *kind;
    const uint8_t *payload;
    size_t i;

    if (!head)
        return err_set(err, EINVAL, "state: the file ends inside a section header");
    i = find_kind(schema, tag);
    if (i == schema->n_kinds)
        return err_set(err, EINVAL, "state: unknown section %08x", tag);
    kind = &schema->kinds[i];
    if (state->sections[i].data)
        return err_set(err, EINVAL, "state section %s: appears twice", kind->name);
    payload = bytes_take(r, len);
    if (!payload)
        return err_set(err, EINVAL, "state section %s: %u bytes do not fit in the file",
                       kind->name, len);
    if (section_crc(head, payload, len) != crc)
        return err_set(err, EINVAL, "state section %s: bad checksum", kind->name);
    if (version != kind->version)
        return err_set(err, EINVAL, "state section %s: version %u, this program reads %u",
                       kind->name, version, kind->version);
    state->sections[i].data = payload;
    state->sections[i].len = len;
    return 0;
}

int state_parse(const void *data, size_t len, const struct state_schema *schema,
                struct state *ret_state, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(data, len);
    struct state state = {.schema = schema};
    uint8_t found[sizeof(magic)];
    uint32_t format, count;
    int e;

    if (schema->n_kinds > STATE_SECTIONS_MAX)
        return err_set(err, EINVAL, "state: %zu kinds of sections", schema->n_kinds);
    bytes_get(&r, found, sizeof(found));
    format = bytes_get_u32(&r);
    count = bytes_get_u32(&r);
    if (r.bad || memcmp(found, magic, sizeof(magic)) != 0)
        return err_set(err, EINVAL, "state: not a state file");
    if (format != STATE_FORMAT)
        return err_set(err, EINVAL, "state: format %u, this program reads %u", format,
                       STATE_FORMAT);
    if (count > STATE_SECTIONS_MAX)
        return err_set(err, EINVAL, "state: %u sections", count);
    for (uint32_t i = 0; i < count; i++) {
        e = parse_section(&r, &state, err);
        if (e < 0)
            return e;
    }
    if (bytes_left(&r) > 0)
        return err_set(err, EINVAL, "state: %zu bytes after the last section", bytes_left(&r));
    for (size_t i = 0; i < schema->n_kinds; i++) {
        if (!state.sections[i].data)
            return err_set(err, EINVAL, "state section %s: missing", schema->kinds[i].name);
    }
    *ret_state = state;
    return 0;
}

struct bytes_reader state_section(const struct state *state, uint32_t tag)
{
    size_t i = find_kind(state->schema, tag);

    if (i == state->schema->n_kinds)
        return bytes_reader_init(NULL, 0);
    return bytes_reader_init(state->sections[i].data, state->sections[i].len);
}

int state_get_blob(const struct state *state, uint32_t tag, void *out, size_t len,
                   struct err *err)
{
    struct bytes_reader r = state_section(state, tag);

    if (bytes_left(&r) != len)
        return state_bad_section(state, tag, "wrong length", err);
    bytes_get(&r, out, len);
    return 0;
}

int state_bad_section(const struct state *state, uint32_t tag, const char *what,
                      struct err *err)
{
    size_t i = find_kind(state->schema, tag);
    const char *name = i < state->schema->n_kinds ? state->schema->kinds[i].name : "?";

    return err_set(err, EINVAL, "state section %s: %s", name, what);
}
