/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_session.h"

#include "guest-init/proto.h"
#include "tests/unit/fake_tar.h"

#include <stdio.h>
#include <string.h>

#define END 1024u /* the zeros that end a tar */

static void send(const struct fake *f, const void *data, size_t len)
{
    fake_send_frame(f, PROTO_SESSION, data, len);
}

static void send_file(const struct fake *f, const char *name, const char *content, char type)
{
    uint8_t block[1024];

    send(f, block, fake_tar_file(block, name, content, type));
}

static void send_found(const struct fake *f)
{
    size_t len = f->session.len > END ? f->session.len - END : 0;

    for (size_t at = 0; at < len; at += PROTO_CHUNK_MAX)
        send(f, f->session.data + at, len - at < PROTO_CHUNK_MAX ? len - at : PROTO_CHUNK_MAX);
}

static void send_data(const struct fake *f)
{
    const char *equals = strchr(f->payload, '=');
    char name[100];

    if (!equals)
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(equals - f->payload), f->payload);
    send_file(f, name, equals + 1, '0');
}

static void send_odd(const struct fake *f)
{
    send_file(f, "../escape", "evil", '0');
    send_file(f, "link", "", '2');
    send_file(f, "empty/", "", '5');
    send_file(f, "good", "kept", '0');
}

static void send_big(const struct fake *f)
{
    static const uint8_t zeros[PROTO_CHUNK_MAX];
    const unsigned size = 101u << 20;
    uint8_t block[512];

    fake_tar_header(block, "big", size, '0');
    send(f, block, sizeof(block));
    for (unsigned at = 0; at < size; at += sizeof(zeros))
        send(f, zeros, sizeof(zeros));
}

void fake_session_send(const struct fake *f)
{
    static const uint8_t zeros[END];
    const char *how = f->behaviour;

    if (strcmp(how, "session-none") == 0 || strcmp(how, "session-flag") == 0) {
        send(f, NULL, 0);
        return;
    }
    if (strcmp(how, "session-junk") == 0)
        send(f, "this is no tar at all, whatever its length is", 45);
    else if (strcmp(how, "session-odd") == 0)
        send_odd(f);
    else if (strcmp(how, "session-big") == 0)
        send_big(f);
    else if (strncmp(how, "session", 7) != 0)
        send_file(f, "touched", how, '0');
    if (strcmp(how, "session") == 0 || strcmp(how, "session-exit") == 0)
        send_found(f);
    if (strncmp(how, "session", 7) == 0)
        send_data(f);
    send(f, zeros, sizeof(zeros));
    send(f, NULL, 0);
}
