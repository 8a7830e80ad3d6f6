/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill inspect`: what a skill needs, of this machine or of the daemon. */
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "api/cli/table.h"
#include "api/client/skillvm.h"
#include "api/skill/entry.h"
#include "api/skill/needs.h"
#include "api/wheels/layer.h"
#include "api/wheels/packages.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/percent.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INSPECTION_MAX (16u << 20)
#define PATH_BYTES     2048u

/* As a daemon of this installation would choose, for a tenant that may use every image. */
static void choose(const struct skill *skill, const struct skill_archive *archive,
                   const struct image_list *images, struct needs *needs,
                   struct image_choice *ret)
{
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    struct err ignored = {0};

    if (skill->image &&
        image_choose_named(images, IMAGE_SET_ALL, skill->image, "SKILL.md", ret) == 0)
        return;
    if (image_choose_clear(images, IMAGE_SET_ALL, ret) != 0)
        return;
    (void)skill_entry_resolve(skill, archive, NULL, NULL, &entry, &ignored);
    image_choose(needs, images, IMAGE_SET_ALL, entry.lang, ret);
}

static int spool_grow(void *ctx, uint64_t bytes, struct err *err)
{
    (void)ctx;
    (void)bytes;
    (void)err;
    return 0;
}

static int temporary(void *ctx)
{
    int fd = memfd_create("wheel", MFD_CLOEXEC);

    (void)ctx;
    return fd < 0 ? -errno : fd;
}

/* The packages of its own wheels: what they hold no image that they go with needs to have. */
static int choose_packages(int tar_fd, const struct skill_archive *archive, struct skill *skill,
                           const struct image_list *images, unsigned place, struct needs *needs,
                           struct wheels_layer *ret, struct err *err)
{
    _cleanup_image_manifest_ struct image_manifest brought = {0};
    _cleanup_fd_ int unpacked = temporary(NULL), layer = temporary(NULL);
    const struct archive_spool spool = {unpacked, spool_grow, NULL};
    const struct wheels wheels = {.tar_fd = tar_fd,
                                  .archive = archive,
                                  .skill = skill,
                                  .image = &images->list[place].manifest,
                                  .wheelhouse = "",
                                  .limits = &wheels_limits_default,
                                  .spool = &spool,
                                  .temporary = temporary,
                                  .layer_fd = layer};
    int r = unpacked < 0 || layer < 0
                ? err_set_errno(err, errno, "cannot make an anonymous file")
                : wheels_prepare(&wheels, ret, &skill->warnings, err);

    if (r < 0 || !ret->packages)
        return r;
    r = ret->digest[0] ? layer_look(layer, &brought, err) : 0;
    if (r < 0)
        return r;
    needs_bring(needs, &brought, packages_go(ret->packages, ret->python_minor, images));
    return 0;
}

static void say_left_out(void *ctx, const char *file, const struct err *why)
{
    (void)ctx;
    cli_say("warning: %s is left out: %s", file, why->message);
}

/* What a daemon that starts here would find. One that it could not take is left out there, too.
 */
static int read_images(const struct cli *cli, struct image_list *ret, struct err *err)
{
    struct cli here = *cli;
    int r;

    /* With a server elsewhere there are no places of this machine. */
    r = here.share_dir[0] ? 0 : cli_find_images(&here, NULL, err);
    if (r < 0)
        return r;
    r = image_list_read(here.share_dir, ret, err);
    if (r < 0)
        return r;
    image_list_read_made(here.images_dir, ret, say_left_out, NULL);
    return 0;
}

int skill_needs(const struct cli *cli, int tar_fd, const struct skill_archive *archive,
                struct skill *skill, struct needs *ret, struct wheels_layer *ret_packages,
                struct err *err)
{
    _cleanup_image_list_ struct image_list images = {.n = 0};
    struct image_choice choice = {0};
    int r = read_images(cli, &images, err);

    if (r < 0)
        return r;
    r = needs_read(tar_fd, archive, skill, ret, err);
    if (r < 0)
        return r;
    choose(skill, archive, &images, ret, &choice);
    r = choose_packages(tar_fd, archive, skill, &images, choice.place, ret, ret_packages, err);
    if (r < 0)
        return r;
    if (ret_packages->packages)
        choose(skill, archive, &images, ret, &choice);
    needs_look(ret, &images, IMAGE_SET_ALL, &choice);
    return 0;
}

/* Where a thing is from, as a person reads it. */
static const char *from_of(const cJSON *item, char ret[128])
{
    const char *from = verbs_text(item, "from"), *version = verbs_text(item, "image_version");

    if (!from)
        return cJSON_IsTrue(verbs_member(item, "connects")) &&
                       cJSON_IsFalse(verbs_member(item, "declared"))
                   ? "not declared"
                   : NULL;
    (void)snprintf(ret, 128, "%s", from);
    if (strcmp(from, "missing") == 0 && cJSON_IsTrue(verbs_member(item, "guarded")))
        (void)snprintf(ret, 128, "missing, which it expects");
    if (version && cJSON_IsFalse(verbs_member(item, "fits")))
        (void)snprintf(ret, 128, "%s, which has %s", from, version);
    return ret;
}

/* One row for each thing of a list. */
static void add_rows(struct table *table, const cJSON *json, const char *list, const char *what,
                     const char *key)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, list)) {
        const char *detail = verbs_text(item, "detail"), *file = verbs_text(item, "file");
        const char *value = verbs_text(item, "value"), *version = verbs_text(item, "version");
        char name[256], where[256], from[128];

        if (value)
            (void)snprintf(name, sizeof(name), "%s: %s", verbs_text(item, key), value);
        else
            (void)snprintf(name, sizeof(name), "%s", verbs_text(item, key));
        if (detail && (strcmp(name, "Python") == 0 || strcmp(name, "Node.js") == 0))
            (void)snprintf(name, sizeof(name), "%s %s", verbs_text(item, key), detail);
        if (version)
            (void)snprintf(name, sizeof(name), "%s %s", verbs_text(item, key), version);
        (void)snprintf(where, sizeof(where), "%s:%.0f", file ? file : "",
                       verbs_number(item, "line"));
        table_add(table, (const char *const[]){what, name, from_of(item, from), where});
    }
}

/* What it gets for what it requires. */
static void add_packages(struct table *table, const cJSON *json)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(json, "packages")) {
        const char *file = verbs_text(item, "file");
        char name[320];

        (void)snprintf(name, sizeof(name), "%s %s", verbs_text(item, "name"),
                       verbs_text(item, "version"));
        table_add(table, (const char *const[]){"resolved", name, verbs_text(item, "from"),
                                               file ? file : ""});
    }
}

static void print_inspection(const cJSON *json)
{
    static const struct {
        const char *list, *what, *key;
    } lists[] = {{"imports", "import", "module"},
                 {"programs", "program", "program"},
                 {"requirements", "package", "package"},
                 {"languages", "language", "name"},
                 {"fields", "field", "name"},
                 {"hosts", "host", "host"},
                 {"secrets", "secret", "text"}};
    static const char *const header[] = {"WHAT", "NAME", "FROM", "WHERE"};
    struct table table = table_begin(header, 4);

    show_field("image", 6, verbs_text(json, "image"));
    show_field("why", 6, verbs_text(json, "image_reason"));
    add_packages(&table, json);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        add_rows(&table, json, lists[i].list, lists[i].what, lists[i].key);
    (void)table_end(&table, 0);
    verbs_print_warnings(json);
    if (cJSON_IsTrue(verbs_member(json, "truncated")))
        cli_say("warning: the skill is large, and not all of it was looked at");
    if (cJSON_IsFalse(verbs_member(json, "image_known")))
        cli_say("warning: there is no list of what the image has (%s.manifest), so that "
                "nothing is known to be missing",
                verbs_text(json, "image"));
}

/* What the daemon would answer, for a skill of this machine. *ret_json is the caller's to free.
 */
static int inspect_here(const struct cli *cli, const char *path, char **ret_json,
                        struct err *err)
{
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_wheels_layer_ struct wheels_layer packages = {.bytes = 0};
    _cleanup_needs_ struct needs needs = {0};
    _cleanup_fd_ int tar = memfd_create("skill", MFD_CLOEXEC);
    struct json_writer w = json_writer_init(INSPECTION_MAX);
    struct buf text;
    int r = tar < 0 ? err_set_errno(err, errno, "cannot make an anonymous file")
                    : skill_load(path, tar, &archive, &skill, err);

    if (r < 0)
        return r;
    r = skill_needs(cli, tar, &archive, &skill, &needs, &packages, err);
    if (r < 0)
        return r;
    json_write_open(&w, NULL, '{');
    json_write_string(&w, "name", skill.name);
    json_write_string(&w, "version", skill.version);
    wheels_write_packages(packages.packages, &w);
    needs_write(&needs, &w);
    json_write_close(&w, '}');
    if (json_writer_end(&w, &text) < 0 || !buf_cstr(&text))
        return err_no_memory(err);
    *ret_json = (char *)text.data;
    return 0;
}

/* Returns the exit status. */
static int inspect_registered(const struct cli *cli, const struct options *options)
{
    _cleanup_buf_ struct buf path = buf_init(PATH_BYTES);
    struct skillvm_error error = {0};
    const char *version;
    _cleanup_free_ char *name = skill_split_name(options->args[0], &version);
    char *json = NULL;
    int r;

    if (!name)
        return verbs_no_memory();
    if (percent_printf(&path, "/v1/skills/%s/%s/inspect", name, version ? version : "latest") <
            0 ||
        !buf_cstr(&path)) {
        cli_say("\"%.64s…\" is too long to be the name of a skill", name);
        return CLI_FAILED;
    }
    r = skillvm_request(cli->client, "GET", buf_cstr(&path), NULL, &json, &error);
    if (r < 0)
        return remote_failed_skill(cli, &error, name);
    return verbs_print(cli, options, r, &error, json, print_inspection);
}

/* As of `skillvm run`: what is there, or looks like a path, is one. */
static bool is_path(const char *text)
{
    return strchr(text, '/') || text[0] == '.' || access(text, F_OK) == 0;
}

int skill_inspect(const struct cli *cli, const struct options *options)
{
    const char *text = options->args[0];
    struct err err = {0};
    char *json = NULL;

    if (!is_path(text))
        return inspect_registered(cli, options);
    if (inspect_here(cli, text, &json, &err) < 0)
        return verbs_failed(&err);
    return verbs_print(cli, options, 0, NULL, json, print_inspection);
}
