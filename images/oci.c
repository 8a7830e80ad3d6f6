/* SPDX-License-Identifier: Apache-2.0 */
#include "images/oci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "images/oci_layer.h"
#include "images/oci_spool.h"
#include "images/oci_stream.h"

#define INDEXES_MAX 3u /* in one another */

static void cleanup_spool(struct oci_spool *spool)
{
    oci_spool_finish(spool);
}

static struct oci_blob named(const char *name)
{
    struct oci_blob blob = {.size = OCI_SIZE_ABSENT};

    (void)snprintf(blob.name, sizeof(blob.name), "%s", name);
    return blob;
}

static int read_config(const struct oci_spool *spool, struct oci_image *image, struct err *err)
{
    _cleanup_oci_document_ struct oci_document config;
    int r = oci_spool_text(spool, &image->config, &config, err);

    return r < 0 ? r : oci_read_config(config.text, config.len, image, err);
}

/* From the index, whose digest is told, on to the manifest. */
static int follow(const struct oci_spool *spool, struct oci_choice *choice,
                  char ret_digest[OCI_HEX_SIZE], struct err *err)
{
    struct oci_blob blob = named("index.json");
    char title[OCI_TITLE_MAX] = "";

    for (unsigned i = 0; i < INDEXES_MAX; i++) {
        _cleanup_oci_document_ struct oci_document index;
        int r = oci_spool_text(spool, &blob, &index, err);

        if (r < 0)
            return r;
        r = oci_read_index(index.text, index.len, choice, err);
        if (r < 0)
            return r;
        if (i == 0)
            strcpy(ret_digest, index.digest);
        if (!title[0])
            strcpy(title, choice->title);
        if (!choice->is_index) {
            strcpy(choice->title, title);
            return 0;
        }
        blob = choice->blob;
    }
    return err_set(err, E2BIG, "more than %u indexes lead to one another", INDEXES_MAX);
}

static int read_layout(const struct oci_spool *spool, const struct oci_document *layout,
                       struct oci_image *image, char ret_digest[OCI_HEX_SIZE], struct err *err)
{
    _cleanup_oci_document_ struct oci_document manifest = {0};
    struct oci_choice choice;
    int r = oci_read_layout(layout->text, layout->len, err);

    if (r < 0)
        return r;
    r = follow(spool, &choice, ret_digest, err);
    if (r < 0)
        return r;
    r = oci_spool_text(spool, &choice.blob, &manifest, err);
    if (r < 0)
        return r;
    r = oci_read_manifest(manifest.text, manifest.len, image, err);
    if (r == 0)
        strcpy(image->title, choice.title);
    return r;
}

static int read_saved(const struct oci_spool *spool, struct oci_image *image, struct err *err)
{
    const struct oci_blob saved = named("manifest.json");
    _cleanup_oci_document_ struct oci_document manifest;
    struct err why = {0};
    int r = oci_spool_text(spool, &saved, &manifest, &why);

    if (r == -ENOENT)
        return err_set(
            err, EINVAL,
            "this is no container image: it has neither oci-layout nor manifest.json "
            "(make one with `docker save` or `skopeo copy … oci-archive:FILE`)");
    return r < 0 ? err_set(err, -r, "%s", why.message)
                 : oci_read_saved(manifest.text, manifest.len, image, err);
}

/*
 * Of both kinds, which one archive may be at the same time, that with digests comes first; a
 * folder is that alone.
 */
static int read_image(const struct oci_spool *spool, struct oci_image *image,
                      char ret_digest[OCI_HEX_SIZE], struct err *err)
{
    const struct oci_blob name = named("oci-layout");
    _cleanup_oci_document_ struct oci_document layout;
    struct err why = {0};
    int r = oci_spool_text(spool, &name, &layout, &why);

    if (r == 0)
        return read_layout(spool, &layout, image, ret_digest, err);
    if (r != -ENOENT)
        return err_set(err, -r, "%s", why.message);
    if (spool->room)
        return err_set(err, EINVAL,
                       "this folder is no container image: it has no oci-layout (make one with "
                       "`skopeo copy … oci:FOLDER`)");
    return read_saved(spool, image, err);
}

static int apply_all(const struct oci_spool *spool, const struct oci_image *image, int root_fd,
                     struct err *err)
{
    struct oci_room room = {2 * OCI_BYTES_MAX, OCI_BYTES_MAX, OCI_ENTRIES_MAX};

    for (unsigned i = 0; i < image->n_layers; i++) {
        _cleanup_fd_ int fd = oci_spool_open(spool, &image->layers[i].blob, err);
        int r = fd < 0 ? fd : oci_layer_apply(root_fd, fd, &image->layers[i], &room, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int begin(int fd, int spool_fd, struct oci_room *room, struct oci_spool *ret,
                 struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "it cannot be read");
    if (S_ISREG(st.st_mode))
        return oci_spool_read(fd, spool_fd, room, ret, err);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, EINVAL, "it is neither a file nor a folder");
    *ret = oci_spool_folder(fd, room);
    return 0;
}

int oci_import(int fd, int spool_fd, int root_fd, struct oci_origin *ret, struct err *err)
{
    struct oci_room room = {2 * OCI_BYTES_MAX, OCI_BYTES_MAX, OCI_FILES_MAX};
    __attribute__((cleanup(cleanup_spool))) struct oci_spool spool = {.dir_fd = -1};
    _cleanup_free_ struct oci_image *image = calloc(1, sizeof(*image));
    struct oci_origin origin = {0};
    int r;

    if (!image)
        return err_no_memory(err);
    r = begin(fd, spool_fd, &room, &spool, err);
    if (r < 0)
        return r;
    r = read_image(&spool, image, origin.digest, err);
    if (r < 0)
        return r;
    r = read_config(&spool, image, err);
    if (r < 0)
        return r;
    r = apply_all(&spool, image, root_fd, err);
    if (r < 0)
        return r;
    if (!spool.room)
        strcpy(origin.digest, spool.digest);
    strcpy(origin.title, image->title);
    *ret = origin;
    return 0;
}
