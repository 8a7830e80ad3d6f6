/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifacts of the hostile guest: tar streams that break one rule each.
 */
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <string.h>

#include "guest-init/proto.h"

#define BLOCK 512u

struct member {
    const char *name;
    char type;
    const char *link;
    uint64_t size;    /* as the header says */
    uint64_t content; /* bytes that really follow */
};

static void put_octal(char *field, size_t width, uint64_t value)
{
    (void)snprintf(field, width, "%0*llo", (int)width - 1, (unsigned long long)value);
}

static void send_block(int conn, const void *block)
{
    hostile_frame(conn, PROTO_FILES, block, BLOCK);
}

static void send_member(int conn, const struct member *m)
{
    char block[BLOCK] = {0};
    unsigned sum = 0;

    (void)snprintf(block, 100, "%s", m->name);
    put_octal(block + 100, 8, 0644);
    put_octal(block + 108, 8, 0);
    put_octal(block + 116, 8, 0);
    if (m->size >> 33) {
        /* GNU base-256: the field's first bit is set. */
        block[124] = (char)0x80;
        for (int i = 0; i < 8; i++)
            block[135 - i] = (char)(m->size >> (8 * i));
    } else {
        put_octal(block + 124, 12, m->size);
    }
    put_octal(block + 136, 12, 0);
    memset(block + 148, ' ', 8);
    block[156] = m->type;
    if (m->link)
        (void)snprintf(block + 157, 100, "%s", m->link);
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 7, "%06o", sum);
    send_block(conn, block);
    memset(block, 'x', sizeof(block));
    for (uint64_t sent = 0; sent < m->content;) {
        static const char chunk[PROTO_CHUNK_MAX];

        if (m->content - sent >= sizeof(chunk)) {
            hostile_frame(conn, PROTO_FILES, chunk, sizeof(chunk));
            sent += sizeof(chunk);
        } else {
            send_block(conn, block);
            sent += BLOCK;
        }
    }
}

static void send_end(int conn)
{
    static const char zeros[2 * BLOCK];

    hostile_frame(conn, PROTO_FILES, zeros, sizeof(zeros));
}

/* A pax record that overrules the next member's path. */
static void send_pax(int conn, const char *record)
{
    char block[BLOCK] = {0};
    struct member m = {.name = "pax", .type = 'x', .size = strlen(record)};

    send_member(conn, &m);
    memcpy(block, record, strlen(record));
    send_block(conn, block);
}

static void send_many(int conn, unsigned count)
{
    char name[32];

    for (unsigned i = 0; i < count; i++) {
        struct member m = {.name = name, .type = '0'};

        (void)snprintf(name, sizeof(name), "f%u", i);
        send_member(conn, &m);
    }
}

int hostile_files(int conn, const char *mode)
{
    static const struct {
        const char *mode;
        struct member member;
    } simple[] = {
        {"tar-parent", {"../../../tmp/hostile-was-here", '0', NULL, 4, 4}},
        {"tar-inner-parent", {"a/../../hostile-was-here", '0', NULL, 4, 4}},
        {"tar-absolute", {"/tmp/hostile-was-here", '0', NULL, 4, 4}},
        {"tar-link", {"link", '2', "/etc/passwd", 0, 0}},
        {"tar-hard-link", {"hard", '1', "/etc/passwd", 0, 0}},
        {"tar-device", {"device", '3', NULL, 0, 0}},
        {"tar-pipe", {"pipe", '6', NULL, 0, 0}},
        {"tar-unknown", {"unknown", 'Q', NULL, 0, 0}},
        {"tar-empty-name", {"", '0', NULL, 4, 4}},
        {"tar-dot", {".", '0', NULL, 4, 4}},
        {"tar-terabyte", {"big", '0', NULL, 1ull << 40, 1024}},
        {"tar-negative", {"big", '0', NULL, UINT64_MAX, 1024}},
        {"tar-short", {"short", '0', NULL, 100000, 1024}},
        {"tar-control-name", {"a\n\033[31mb", '0', NULL, 4, 4}},
    };
    static const char noise[BLOCK] = "this is no header";

    for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++) {
        if (strcmp(mode, simple[i].mode) == 0) {
            send_member(conn, &simple[i].member);
            send_end(conn);
            return 0;
        }
    }
    if (strcmp(mode, "tar-noise") == 0) {
        for (int i = 0; i < 64; i++)
            send_block(conn, noise);
    } else if (strcmp(mode, "tar-cut") == 0) {
        hostile_frame(conn, PROTO_FILES, noise, 100);
    } else if (strcmp(mode, "tar-many") == 0) {
        send_many(conn, 20000);
        send_end(conn);
    } else if (strcmp(mode, "tar-twice") == 0) {
        send_member(conn, &(struct member){"same", '0', NULL, 4, 4});
        send_member(conn, &(struct member){"same", '0', NULL, 4, 4});
        send_end(conn);
    } else if (strcmp(mode, "tar-file-folder") == 0) {
        send_member(conn, &(struct member){"a", '0', NULL, 4, 4});
        send_member(conn, &(struct member){"a/b", '0', NULL, 4, 4});
        send_end(conn);
    } else if (strcmp(mode, "tar-pax-parent") == 0) {
        send_pax(conn, "32 path=../../hostile-was-here\n\n");
        send_member(conn, &(struct member){"harmless", '0', NULL, 4, 4});
        send_end(conn);
    } else if (strcmp(mode, "tar-pax-lie") == 0) {
        send_pax(conn, "999999999 path=x\n");
        send_member(conn, &(struct member){"harmless", '0', NULL, 4, 4});
        send_end(conn);
    } else if (strcmp(mode, "tar-flood") == 0) {
        for (;;)
            send_member(conn, &(struct member){"flood", '0', NULL, 1 << 20, 1 << 20});
    } else {
        return -1;
    }
    return 0;
}
