/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/chooser.h"

#include "api/daemon/engine/quota.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/turn.h"
#include "api/skill/entry.h"
#include "api/wheels/layer.h"
#include "api/wheels/packages.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_allowed(struct daemon *d, const struct images *images, const char *tenant,
                        image_set_t *ret, struct err *err)
{
    struct tenant_limits limits;
    int r = quota_limits(d->registry, tenant, &limits, err);

    if (r == 0)
        *ret = choices_allowed(&images->known, &limits);
    return r;
}

int chooser_images(struct daemon *d, const struct images *images, const char *tenant,
                   char ret[SHA256_HEX_SIZE], struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(IMAGES_MAX * (IMAGE_NAME_SIZE + SHA256_HEX_SIZE));
    image_set_t allowed = 0;
    int r = read_allowed(d, images, tenant, &allowed, err);

    if (r < 0)
        return r;
    for (unsigned i = 0; r == 0 && i < images->n; i++)
        if (image_set_has(allowed, i))
            r = buf_printf(&text, "%s %s\n", images->known.list[i].name,
                           images->list[i].digest);
    return r < 0 || sha256_of(text.data, text.len, ret) < 0 ? err_no_memory(err) : 0;
}

struct chooser_packages chooser_packages_of(const struct registry_skill *row)
{
    return (struct chooser_packages){.digest = row->packages_digest ? row->packages_digest : "",
                                     .fd = -1,
                                     .list = row->packages,
                                     .python_minor = (unsigned)row->packages_python};
}

/* What a choice is remembered by: the skill, and all that is known of its packages. */
static int identify(const char *digest, const struct chooser_packages *packages,
                    char ret[SHA256_HEX_SIZE], struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int n;

    if (!packages->list) {
        (void)snprintf(ret, SHA256_HEX_SIZE, "%s", digest);
        return 0;
    }
    n = asprintf(&text, "%s %s %u %s", digest, packages->digest, packages->python_minor,
                 packages->list);
    if (n < 0)
        text = NULL;
    return n < 0 || sha256_of(text, (size_t)n, ret) < 0 ? err_no_memory(err) : 0;
}

/* What is in them: nothing where the image has them all. */
static int look_into(struct daemon *d, const struct chooser_packages *packages,
                     struct image_manifest *ret, struct err *err)
{
    _cleanup_fd_ int fd = -1;

    if (!packages->digest[0])
        return 0;
    if (packages->fd >= 0)
        return layer_look(packages->fd, ret, err);
    fd = objects_get(d->objects, packages->digest, err);
    return fd < 0 ? fd : layer_look(fd, ret, err);
}

/* Says of what a skill needs what its packages have. */
static int bring(struct daemon *d, const struct images *images,
                 const struct chooser_packages *packages, struct needs *needs, struct err *err)
{
    _cleanup_image_manifest_ struct image_manifest brought = {0};
    int r;

    if (!packages->list)
        return 0;
    r = look_into(d, packages, &brought, err);
    if (r < 0)
        return r;
    needs_bring(needs, &brought,
                packages_go(packages->list, packages->python_minor, &images->known));
    return 0;
}

/*
 * What needs no look: named by the request or by SKILL.md, which may have been written for
 * another runner, or remembered. 1 with *ret; 0: look; -ENOENT: the request's is not here;
 * -EACCES.
 */
static int choose_known(struct daemon *d, const struct images *images, const char *identity,
                        const char *lang, const char *of_request, const char *of_skill,
                        image_set_t allowed, struct image_choice *ret)
{
    const struct image_list *known = &images->known;
    int r = -ENOENT;

    if (of_request)
        r = image_choose_named(known, allowed, of_request, "the request", ret);
    else if (of_skill)
        r = image_choose_named(known, allowed, of_skill, "SKILL.md", ret);
    if (r == -ENOENT && !of_request)
        return choices_recall(d->choices, images, identity, lang, allowed, ret);
    return r < 0 ? r : 1;
}

int chooser_look(struct daemon *d, const struct images *images, const char *tenant,
                 const struct skill *skill, const struct skill_archive *archive,
                 const struct chooser_packages *packages, const char *image,
                 struct needs *needs, struct image_choice *ret, struct err *err)
{
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    char identity[SHA256_HEX_SIZE];
    struct err ignored = {0};
    image_set_t allowed = 0;
    int r = read_allowed(d, images, tenant, &allowed, err);

    if (r < 0)
        return r;
    r = identify(archive->digest, packages, identity, err);
    if (r < 0)
        return r;
    r = bring(d, images, packages, needs, err);
    if (r < 0)
        return r;
    *ret = (struct image_choice){0};
    (void)skill_entry_resolve(skill, archive, NULL, NULL, &entry, &ignored);
    r = choose_known(d, images, identity, entry.lang, image, skill->image, allowed, ret);
    if (r == 0)
        choices_make(d->choices, images, identity, entry.lang, allowed, needs, ret);
    else if (r < 0)
        *ret = (struct image_choice){0};
    needs_look(needs, &images->known, allowed, ret);
    return 0;
}

/* Opens those that are not yet, before a turn: nobody else waits while they come from the
 * servers of a cluster. The descriptor is the caller's; -1: nothing was opened. */
static int open_packages(struct daemon *d, struct chooser_packages *packages, int *ret_fd,
                         struct err *err)
{
    int fd;

    *ret_fd = -1;
    if (!packages->list || !packages->digest[0] || packages->fd >= 0)
        return 0;
    fd = objects_get(d->objects, packages->digest, err);
    if (fd < 0)
        return fd;
    *ret_fd = packages->fd = fd;
    return 0;
}

/* At a turn, with its packages open. */
static int look(struct daemon *d, const struct images *images, const struct chooser_source *u,
                const char *identity, const char *lang, image_set_t allowed,
                struct image_choice *ret, struct err *err)
{
    _cleanup_needs_ struct needs needs = {0};
    int r = needs_read(u->tar_fd, u->archive, u->skill, &needs, err);

    if (r < 0)
        return r;
    r = bring(d, images, u->packages, &needs, err);
    if (r < 0)
        return r;
    choices_make(d->choices, images, identity, lang, allowed, &needs, ret);
    return 0;
}

/* Names between spaces, as a sentence has them. */
static void list_names(const char *images, char ret[2 * TENANT_IMAGES_SIZE])
{
    size_t n = 0;

    for (; *images; images++) {
        if (*images == ' ')
            ret[n++] = ',';
        ret[n++] = *images;
    }
    ret[n] = '\0';
}

static bool refuse(const struct execution *e, const char *named, image_set_t allowed, int why,
                   struct http_reply *reply)
{
    char names[2 * TENANT_IMAGES_SIZE];

    if (why == -ENOENT) {
        image_list_names(&e->images->known, allowed, names, sizeof(names));
        return http_reply_error(reply, 400, "bad_request",
                                "there is no image \"%.64s\" here; there is %s", named, names);
    }
    list_names(e->limits.images, names);
    if (named)
        return http_reply_error(reply, 403, "image_not_allowed",
                                "this tenant may not use the image \"%.64s\"; it may use %s",
                                named, names);
    return http_reply_error(reply, 403, "image_not_allowed",
                            "none of the images that this tenant may use is here: %s", names);
}

/* err stays untouched where the choice itself is refused. */
static int choose(struct daemon *d, const struct chooser_source *u, const char *lang,
                  const char *image, image_set_t allowed, struct execution *e, struct err *err)
{
    char identity[SHA256_HEX_SIZE];
    _cleanup_turn_ struct turn turn = {.is_hasty = e->is_given};
    int r = identify(e->skill_digest, u->packages, identity, err);

    if (r < 0)
        return r;
    r = choose_known(d, e->images, identity, lang, image, u->skill->image, allowed, &e->image);
    if (r != 0)
        return r < 0 ? r : 0;
    r = u->has_turn ? 0 : turn_take(&turn, d, TURN_ARCHIVE, e->tenant, err);
    return r < 0 ? r : look(d, e->images, u, identity, lang, allowed, &e->image, err);
}

bool chooser_choose(struct daemon *d, const struct chooser_source *u, const char *lang,
                    const char *image, struct execution *e, struct http_reply *reply)
{
    const char *named = image ? image : u->skill->image;
    image_set_t allowed;
    struct err err = {0};
    int r;

    images_unref(e->images);
    e->images = image_tables_now(d->images);
    allowed = choices_allowed(&e->images->known, &e->limits);
    r = choose(d, u, lang, image, allowed, e, &err);
    if (r == 0)
        return true;
    if (err.code)
        return failure_reply(reply, r, &err);
    /* A skill's that is not here was not what was refused. */
    if (!image && named && image_list_find(&e->images->known, named) < 0)
        named = NULL;
    return refuse(e, named, allowed, r, reply);
}

int chooser_find(struct daemon *d, const struct images *images, const char *tenant,
                 const char *digest, const struct chooser_packages *packages, const char *lang,
                 const char *named, struct image_choice *ret, struct err *err)
{
    struct chooser_packages opened = *packages;
    char identity[SHA256_HEX_SIZE];
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_fd_ int fd = -1, packages_fd = -1;
    image_set_t allowed = 0;
    int r = read_allowed(d, images, tenant, &allowed, err);

    if (r < 0)
        return r;
    r = identify(digest, packages, identity, err);
    if (r < 0)
        return r;
    r = choose_known(d, images, identity, lang, NULL, named, allowed, ret);
    if (r != 0)
        return r < 0 ? err_set(err, EACCES, "its image may not be used") : 0;
    fd = objects_get(d->objects, digest, err);
    r = fd < 0 ? fd : open_packages(d, &opened, &packages_fd, err);
    if (r < 0)
        return r;
    r = turn_take(&turn, d, TURN_ARCHIVE, tenant, err);
    if (r < 0)
        return r;
    r = skill_archive_reload(fd, digest, &archive, &skill, err);
    return r < 0
               ? r
               : look(d, images, &(struct chooser_source){&skill, &archive, fd, &opened, true},
                      identity, lang, allowed, ret, err);
}
