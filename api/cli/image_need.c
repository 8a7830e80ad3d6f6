/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/image_need.h"

#include "api/cli/daemon.h"
#include "api/cli/image_store.h"
#include "api/cli/skill_verbs.h"
#include "api/skill/code.h"
#include "api/skill/entry.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NODE "node" /* the language, and the image that brings it */

static bool some_runs_node(const struct image_store *store)
{
    for (unsigned i = 0; i < store->n; i++)
        if (image_manifest_runs(&store->list[i].manifest, NODE))
            return true;
    return false;
}

/* The image that is needed and not here, or NULL. */
static const char *find_missing(const struct image_store *store, const char *image,
                                const char *lang)
{
    if (image)
        return image_store_find(store, image) ? NULL : image;
    return lang && strcmp(lang, NODE) == 0 && !some_runs_node(store) ? NODE : NULL;
}

static int load(const struct image_need *need, int tar_fd, struct skill_archive *ret_archive,
                struct skill *ret_skill)
{
    const size_t len = need->code ? strlen(need->code) : 0;
    const char *lang;
    int r;

    if (!need->code)
        return skill_load(need->path, tar_fd, ret_archive, ret_skill, NULL);
    r = code_language(need->lang, need->code, len, &lang, NULL);
    return r < 0 ? r
                 : code_make_skill(lang, need->code, len, tar_fd, ret_archive, ret_skill, NULL);
}

/*
 * What its SKILL.md and its entry say, else what it imports and starts. A skill or code that
 * cannot be read is the daemon's to refuse.
 */
static void read_skill(const struct cli *cli, const struct image_need *need,
                       const struct image_store *store, char ret[IMAGE_NAME_SIZE])
{
    _cleanup_fd_ int tar = memfd_create("skill", MFD_CLOEXEC);
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    _cleanup_wheels_layer_ struct wheels_layer packages = {.bytes = 0};
    _cleanup_needs_ struct needs needs = {0};
    const char *missing;

    if (tar < 0 || load(need, tar, &archive, &skill) < 0)
        return;
    (void)skill_entry_resolve(&skill, &archive, NULL, NULL, &entry, NULL);
    missing = find_missing(store, skill.image, entry.lang);
    if (!missing && !skill.image &&
        skill_needs(cli, tar, &archive, &skill, &needs, &packages, NULL) == 0)
        missing = needs.away;
    (void)snprintf(ret, IMAGE_NAME_SIZE, "%s", missing ? missing : "");
}

/* A software host that runs would not find it. */
static int build_or_tell(const struct cli *cli, const char *name, bool may_build, bool asked,
                         struct err *err)
{
    struct daemon_state daemon;
    int r = daemon_find(cli, &daemon, err);

    if (r < 0)
        return r;
    if (may_build && !daemon.soft) {
        cli_say("there is no image %s yet: building it, which takes minutes", name);
        return image_make(cli, name, err);
    }
    if (asked)
        return err_set(
            err, EBUSY,
            "there is no image %s, and the software host that runs has those that were there "
            "when it started: `skillvm down`, `skillvm image build %s`, `skillvm up`",
            name, name);
    cli_say("there is no image %s yet: `skillvm image build %s` makes it%s", name, name,
            daemon.soft ? ", and the software host finds it when it starts"
                        : ", and so does --build-image");
    return 0;
}

int image_need_meet(const struct cli *cli, const struct image_need *need, struct err *err)
{
    _cleanup_image_store_ struct image_store store = {0};
    bool may_build = need->build || isatty(STDERR_FILENO);
    char name[IMAGE_NAME_SIZE] = "";
    const char *missing;
    int r;

    if (cli->server[0])
        return 0;
    r = image_store_read(cli, &store, err);
    if (r < 0)
        return r;
    missing = find_missing(&store, need->image, need->lang);
    (void)snprintf(name, sizeof(name), "%s", missing ? missing : "");
    /* Only for a build is a skill read here, as the daemon does again. */
    if (may_build && !need->image && (need->path || need->code))
        read_skill(cli, need, &store, name);
    return name[0] && image_can_build(cli, name)
               ? build_or_tell(cli, name, may_build, need->build, err)
               : 0;
}
