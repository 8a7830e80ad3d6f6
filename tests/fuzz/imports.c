/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A skill of any files: path, NUL, content, NUL, and so on. Each content is scanned, and the
 * first file is an entry whose imports are followed. What must hold: what is refused told
 * nothing, names are names within their limits, and the list is sorted, each once.
 */
#include "api/skill/imports.h"
#include "api/skill/imports_scan.h"
#include "api/skill/profile.h"
#include "api/skill/tar.h"
#include "base/fd.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FILES_MAX 32u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct member {
    const char *path;
    const char *text;
    size_t len;
};

static void check_name(const char *name)
{
    size_t len = strnlen(name, IMPORTS_NAME_MAX + 1);

    if (len == 0 || len > IMPORTS_NAME_MAX || !utf8_valid(name, len) ||
        strpbrk(name, " \t\r\n/#'\"()\\"))
        abort();
}

static int count(void *user, const struct imports_found *found)
{
    size_t *calls = user;

    ++*calls;
    if (found->module[0] || found->level == 0)
        check_name(found->module);
    if (found->name)
        check_name(found->name);
    return 0;
}

static int stop(void *user, const struct imports_found *found)
{
    (void)user;
    (void)found;
    return -ECANCELED;
}

static void check_scan(const struct member *m)
{
    size_t as_main = 0, imported = 0;
    int r = imports_scan(m->text, m->len, true, count, &as_main);

    if (imports_scan(m->text, m->len, false, count, &imported) != r || imported > as_main)
        abort();
    if (r < 0
            ? r != -EINVAL || as_main > 0
            : imports_scan(m->text, m->len, true, stop, NULL) != (as_main > 0 ? -ECANCELED : 0))
        abort();
}

static void check_names(const struct skill_strings *names)
{
    char profile[PROFILE_NAME_SIZE];

    if (names->len > IMPORTS_NAMES_MAX)
        abort();
    for (size_t i = 0; i < names->len; i++) {
        check_name(names->items[i]);
        if (i > 0 && strcmp(names->items[i - 1], names->items[i]) >= 0)
            abort();
    }
    profile_make(names, names, profile);
    if (strlen(profile) >= sizeof(profile))
        abort();
}

static void put_file(struct buf *tar, const struct member *m)
{
    const struct tar_header header = {
        .path = m->path, .type = TAR_FILE, .mode = 0644, .size = m->len};
    static const uint8_t zeros[TAR_TRAILER];

    if (tar_put_header(tar, &header) < 0 || buf_append(tar, m->text, m->len) < 0 ||
        buf_append(tar, zeros, tar_padding(m->len)) < 0)
        abort();
}

static void follow(const struct member *members, size_t n)
{
    static const char skill_md[] = "---\nname: x\ndescription: y\n---\n";
    const struct member md = {"SKILL.md", skill_md, sizeof(skill_md) - 1};
    _cleanup_fd_ int in_fd = memfd_create("in", MFD_CLOEXEC);
    _cleanup_fd_ int tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct buf tar = buf_init(16u << 20);
    struct skill_archive archive;
    struct skill_strings names;

    put_file(&tar, &md);
    for (size_t i = 0; i < n; i++)
        put_file(&tar, &members[i]);
    if (in_fd < 0 || tar_fd < 0 || fd_write_full(in_fd, tar.data, tar.len) < 0)
        abort();
    buf_finish(&tar);
    if (skill_archive_ingest(in_fd, &archive_limits_default, NULL, tar_fd, &archive, NULL) < 0)
        return;
    for (size_t i = 0; i < archive.n_entries; i++) {
        const struct skill_entry script = {PROTO_MODE_ENTRY, archive.entries[i].path, "python"};
        struct skill_entry module = {PROTO_MODE_MODULE, strdup(script.entry), "python"};

        if (!module.entry)
            abort();
        for (char *p = module.entry; *p; p++)
            *p = *p == '/' ? '.' : *p;
        if (imports_read(tar_fd, &archive, &script, &names, NULL) < 0)
            abort();
        check_names(&names);
        skill_strings_finish(&names);
        if (imports_read(tar_fd, &archive, &module, &names, NULL) < 0)
            abort();
        check_names(&names);
        skill_strings_finish(&names);
        free(module.entry);
    }
    skill_archive_finish(&archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct member members[FILES_MAX];
    char *text = malloc(size + 1), *end = text ? text + size : NULL, *at = text;
    size_t n = 0;

    if (!text)
        return 0;
    memcpy(text, data, size);
    *end = '\0';
    while (at < end && n < FILES_MAX) {
        struct member m = {.path = at};

        at += strlen(at) + 1;
        if (at > end || !m.path[0] || strlen(m.path) > TAR_PATH_MAX)
            break;
        m.text = at;
        m.len = strlen(at);
        at += m.len + 1;
        check_scan(&m);
        members[n++] = m;
    }
    follow(members, n);
    free(text);
    return 0;
}
