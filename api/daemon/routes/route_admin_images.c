/* SPDX-License-Identifier: Apache-2.0 */
/* The images of this daemon, which an operator makes and removes while it runs. */
#include "api/daemon/callers/audit.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "base/cleanup.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHANGES_JSON_MAX (256u * 1024u)

void daemon_list_images(struct daemon *d, struct node_entry *ret)
{
    _cleanup_images_ struct images *images = image_tables_now(d->images);

    ret->n_images = 0;
    for (unsigned i = 0; i < images->n && ret->n_images < NODE_IMAGES_MAX; i++)
        (void)snprintf(ret->images[ret->n_images++], NODE_IMAGE_SIZE, "%s",
                       images->known.list[i].name);
}

/* One after the other: what is told last is what there is. */
static int tell_cluster(struct daemon *d, struct err *err)
{
    static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
    _cleanup_free_ struct node_entry *facts = calloc(1, sizeof(*facts));
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&telling);

    if (!facts)
        return err_no_memory(err);
    daemon_list_images(d, facts);
    cluster_set_images(d->cluster, facts);
    return 0;
}

int daemon_reload_images(struct daemon *d, struct image_changes *ret, struct err *err)
{
    int r;

    /* Its folder comes through a cache that takes nobody else to write there. */
    if (getenv("SKILLVM_SHARE_IMAGE"))
        return err_set(err, EEXIST,
                       "a software host has the images that were there when it started: "
                       "`skillvm down` and `skillvm up`");
    r = image_tables_reload(d->images, ret, err);
    return r < 0 || !d->cluster ? r : tell_cluster(d, err);
}

static void write_changed(struct json_writer *w, const struct image_changes *changes,
                          enum image_change_kind kind)
{
    json_write_open(w, image_change_word(kind), '[');
    for (unsigned i = 0; i < changes->n; i++)
        if (changes->list[i].kind == kind)
            json_write_string(w, NULL, changes->list[i].name);
    json_write_close(w, ']');
}

static void write_refused(struct json_writer *w, const struct image_changes *changes)
{
    json_write_open(w, image_change_word(IMAGE_REFUSED), '[');
    for (unsigned i = 0; i < changes->n; i++) {
        if (changes->list[i].kind != IMAGE_REFUSED)
            continue;
        json_write_open(w, NULL, '{');
        json_write_string(w, "name", changes->list[i].name);
        json_write_string(w, "reason", changes->list[i].why);
        json_write_close(w, '}');
    }
    json_write_close(w, ']');
}

static void write_all(struct json_writer *w, struct daemon *d,
                      const struct image_changes *changes)
{
    _cleanup_images_ struct images *images = image_tables_now(d->images);

    json_write_open(w, NULL, '{');
    json_write_open(w, "images", '[');
    for (unsigned i = 0; i < images->n; i++)
        json_write_string(w, NULL, images->known.list[i].name);
    json_write_close(w, ']');
    write_changed(w, changes, IMAGE_ADDED);
    write_changed(w, changes, IMAGE_REPLACED);
    write_changed(w, changes, IMAGE_REMOVED);
    write_refused(w, changes);
    json_write_close(w, '}');
}

void route_admin_images_reload(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_free_ struct image_changes *changes = calloc(1, sizeof(*changes));
    struct json_writer w = json_writer_init(CHANGES_JSON_MAX);
    struct err err = {0};
    int r = changes ? daemon_reload_images(d, changes, &err) : err_no_memory(&err);

    if (r == 0) {
        for (unsigned i = 0; i < changes->n; i++)
            audit_note(d->audit, &request->caller, "images.reload", changes->list[i].name, "%s",
                       image_change_word(changes->list[i].kind));
        write_all(&w, d, changes);
    }
    (void)failure_or_json(reply, 200, &w, r, &err);
}
