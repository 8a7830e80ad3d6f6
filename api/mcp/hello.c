/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/hello.h"

#include "api/json/json_walk.h"

#include <stddef.h>

#define META "io.modelcontextprotocol/"

/* The latest first. */
static const char *const sessions[] = {"2025-11-25", "2025-06-18", HELLO_BATCHES, "2024-11-05"};

static const char instructions[] =
    "Each tool runs a skill in a virtual machine that is as its snapshot was: nothing of one "
    "call "
    "is left for the next but a session's files, and there is no network but for hosts that "
    "are "
    "permitted. Files that a skill makes are linked in the result and can be read as "
    "resources. What a skill is for and how it is used "
    "says its SKILL.md, the resource skill://NAME/VERSION/SKILL.md.";

const char *hello_agree(struct json_slice asked)
{
    struct json_slice text = {asked.data + 1, asked.len - 2};

    for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
        if (json_slice_is(text, sessions[i]))
            return sessions[i];
    }
    return sessions[0];
}

struct json_slice hello_named(struct json_slice params)
{
    struct json_slice meta, version = {0};

    /* Some write the slash with an escape. */
    if (json_find(params, "_meta", &meta) && !json_find(meta, META "protocolVersion", &version))
        (void)json_find(meta, "io.modelcontextprotocol\\/protocolVersion", &version);
    return version;
}

static void write_capabilities(struct json_writer *w, bool list_changed)
{
    static const char *const names[] = {"tools", "resources"};

    json_write_open(w, "capabilities", '{');
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_write_open(w, names[i], '{');
        json_write_bool(w, "listChanged", list_changed);
        json_write_close(w, '}');
    }
    json_write_close(w, '}');
}

static void write_info(struct json_writer *w, const char *key)
{
    json_write_open(w, key, '{');
    json_write_string(w, "name", "skillvm");
    json_write_string(w, "title", "skillvm");
    json_write_string(w, "version", SKILLVM_VERSION);
    json_write_close(w, '}');
}

void hello_write_initialize(struct json_writer *w, const char *version, bool list_changed)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "protocolVersion", version);
    write_capabilities(w, list_changed);
    write_info(w, "serverInfo");
    json_write_string(w, "instructions", instructions);
    json_write_close(w, '}');
}

void hello_write_discover(struct json_writer *w, bool list_changed, unsigned ttl_ms)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "resultType", "complete");
    hello_write_versions(w, "supportedVersions");
    write_capabilities(w, list_changed);
    json_write_string(w, "instructions", instructions);
    json_write_number(w, "ttlMs", ttl_ms);
    json_write_string(w, "cacheScope", "private");
    json_write_open(w, "_meta", '{');
    hello_write_server(w);
    json_write_close(w, '}');
    json_write_close(w, '}');
}

void hello_write_versions(struct json_writer *w, const char *key)
{
    json_write_open(w, key, '[');
    json_write_string(w, NULL, HELLO_STATELESS);
    for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
        json_write_string(w, NULL, sessions[i]);
    json_write_close(w, ']');
}

void hello_write_server(struct json_writer *w)
{
    write_info(w, META "serverInfo");
}
