/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A skill of any files: path, NUL, content, NUL, and so on. Each content is scanned, as Python,
 * as JavaScript, as a shell's and as a log; each file is an entry whose imports are followed,
 * and what the skill needs is read. What must hold: what is refused told nothing, names are
 * names within their limits, lists are sorted, each once, and what is said is within its limits
 * and is JSON.
 */
#include "api/skill/imports.h"
#include "api/skill/as_module.h"
#include "api/skill/denied.h"
#include "api/skill/imports_scan.h"
#include "api/skill/js_imports.h"
#include "api/skill/js_scan.h"
#include "api/skill/needs.h"
#include "api/skill/profile.h"
#include "api/skill/shell_scan.h"
#include "api/skill/tar.h"
#include "api/skill/url_host.h"
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

/* A skill may declare it, and does then. */
static void check_host(const char *host)
{
    _cleanup_buf_ struct buf list = buf_init(HOST_PATTERN_SIZE);

    if (host_list_add(&list, host, strlen(host), false, NULL) < 0 ||
        !url_host_is_permitted(buf_cstr(&list), host))
        abort();
}

static int count(void *user, const struct imports_found *found)
{
    size_t *calls = user;

    ++*calls;
    if (found->line == 0)
        abort();
    if (found->kind != IMPORTS_MODULE) {
        if (strlen(found->module) > IMPORTS_TEXT_MAX)
            abort();
        if (found->kind == IMPORTS_HOST)
            check_host(found->module);
        return 0;
    }
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

static int count_js(void *user, const struct imports_found *found)
{
    char name[IMPORTS_NAME_MAX + 1];
    size_t *calls = user, len = strnlen(found->module, IMPORTS_NAME_MAX + 1);

    ++*calls;
    if (found->line == 0 || len == 0)
        abort();
    if (found->kind == IMPORTS_HOST) {
        check_host(found->module);
        return 0;
    }
    if (found->kind == IMPORTS_PROGRAM || found->kind == IMPORTS_COMMAND) {
        if (!utf8_valid(found->module, strnlen(found->module, IMPORTS_TEXT_MAX + 1)) ||
            strlen(found->module) > IMPORTS_TEXT_MAX)
            abort();
        return 0;
    }
    if (found->kind != IMPORTS_NODE || len > IMPORTS_NAME_MAX)
        abort();
    if (js_package_name(found->module, name) &&
        (strncmp(name, found->module, strlen(name)) != 0 || strpbrk(name, " \t\r\n\\:'\"`#")))
        abort();
    return 0;
}

static void check_js(const struct member *m)
{
    size_t calls = 0;
    int r = js_scan(m->text, m->len, count_js, &calls);

    if (r < 0 ? r != -EINVAL || calls > 0
              : js_scan(m->text, m->len, stop, NULL) != (calls > 0 ? -ECANCELED : 0))
        abort();
}

static int count_shell(void *user, const struct shell_found *found)
{
    size_t *calls = user;

    ++*calls;
    if (found->line == 0 || (found->kind != SHELL_SOURCED && found->kind != SHELL_HOST &&
                             !shell_is_program(found->name)))
        abort();
    if (found->kind == SHELL_HOST)
        check_host(found->name);
    return 0;
}

static int stop_shell(void *user, const struct shell_found *found)
{
    (void)user;
    (void)found;
    return -ECANCELED;
}

static void check_shell(const struct member *m)
{
    size_t calls = 0;
    int r = shell_scan(m->text, m->len, count_shell, &calls);

    if (r < 0 ? r != -EINVAL || calls > 0
              : shell_scan(m->text, m->len, stop_shell, NULL) != (calls > 0 ? -ECANCELED : 0))
        abort();
}

/* A small one, and a large one that is not always better. */
static const struct image_list images = {
    .n = 3,
    .n_here = 2,
    .list = {{"python", 1, true, {.known = true, .python_minor = 11}},
             {"node", 2, true, {.known = true}},
             {"away", 0, false, {.known = true, .python_minor = 13}}}};

static void check_log(const struct member *m)
{
    char text[256];

    if (needs_explain(&images, IMAGE_SET_ALL, 0, m->text, m->len, text, sizeof(text)) &&
        (strlen(text) >= sizeof(text) || !utf8_valid(text, strlen(text))))
        abort();
    if (denied_explain(m->text, m->len, text, sizeof(text)) &&
        (strlen(text) >= sizeof(text) || !utf8_valid(text, strlen(text))))
        abort();
}

static void check_needs(int tar_fd, const struct skill_archive *archive)
{
    struct skill skill = {0};
    struct skill_strings warnings = {0};
    struct needs needs;
    struct image_choice choice;
    struct json_writer w = json_writer_init(64u << 20);

    if (needs_read(tar_fd, archive, &skill, &needs, NULL) < 0)
        abort();
    image_choose(&needs, &images, IMAGE_SET_ALL, "python", &choice);
    if (choice.place >= images.n_here || !utf8_valid(choice.why, strlen(choice.why)))
        abort();
    needs_look(&needs, &images, IMAGE_SET_ALL, &choice);
    if (needs.len > NEEDS_ITEMS_MAX || needs_warn(&needs, &warnings) < 0 ||
        warnings.len > NEEDS_WARNINGS_MAX + 1)
        abort();
    for (size_t i = 0; i < needs.len; i++)
        if (needs.items[i].line == 0 || strlen(needs.items[i].name) > NEEDS_TEXT_MAX)
            abort();
    json_write_open(&w, NULL, '{');
    needs_write(&needs, &w);
    json_write_close(&w, '}');
    if (w.out.error ||
        json_text_check((const char *)w.out.data, w.out.len, &(struct json_slice){0}, NULL) < 0)
        abort();
    buf_finish(&w.out);
    skill_strings_finish(&warnings);
    needs_finish(&needs);
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

static void run_as(int tar_fd, const struct skill_archive *archive, const char *path)
{
    struct skill_entry entry = {PROTO_MODE_SCRIPT, strdup(path), "python"};

    if (!entry.entry || as_module(tar_fd, archive, &entry, NULL) < 0 ||
        (entry.mode == PROTO_MODE_MODULE ? strchr(entry.entry, '/') != NULL
                                         : strcmp(entry.entry, path) != 0))
        abort();
    skill_entry_finish(&entry);
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
        run_as(tar_fd, &archive, script.entry);
    }
    check_needs(tar_fd, &archive);
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
        check_js(&m);
        check_shell(&m);
        check_log(&m);
        members[n++] = m;
    }
    follow(members, n);
    free(text);
    return 0;
}
