/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container image says of itself: its documents, chosen by the first byte, and the paths
 * of its layers' entries. What is taken leads nowhere else: every name is a clean relative
 * path.
 */
#include "images/oci_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
    char again[OCI_PATH_MAX];

    if (oci_path(path, again, NULL) < 0 || strcmp(path, again) != 0)
        abort();
}

static void check_digest(const char *hex)
{
    if (*hex && (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64))
        abort();
}

static void check_blob(const struct oci_blob *blob)
{
    check_path(blob->name);
    check_digest(blob->digest);
}

static void check_image(const struct oci_image *image)
{
    if (image->n_layers == 0 || image->n_layers > OCI_LAYERS_MAX)
        abort();
    check_blob(&image->config);
    for (unsigned i = 0; i < image->n_layers; i++) {
        check_blob(&image->layers[i].blob);
        check_digest(image->layers[i].diff_id);
    }
    for (const char *c = image->title; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            abort();
}

static int read_path(const char *text, size_t size, struct err *err)
{
    char *name = strndup(text, size), path[OCI_PATH_MAX];
    enum oci_mark mark;
    int r = name ? oci_path(name, path, err) : err_no_memory(err);

    free(name);
    if (r < 0)
        return r;
    if (*path)
        check_path(path);
    r = oci_take_mark(path, &mark, err);
    if (r == 0 && *path)
        check_path(path);
    return r;
}

static int read_any(uint8_t what, const char *text, size_t size, struct err *err)
{
    static struct oci_image image;
    struct oci_choice choice;
    int r;

    switch (what % 6) {
    case 0:
        return oci_read_layout(text, size, err);
    case 1:
        r = oci_read_index(text, size, &choice, err);
        if (r == 0)
            check_blob(&choice.blob);
        return r;
    case 2:
        r = oci_read_manifest(text, size, &image, err);
        break;
    case 3:
        r = oci_read_saved(text, size, &image, err);
        break;
    case 4:
        memset(&image, 0, sizeof(image));
        strcpy(image.config.name, "c");
        image.n_layers = 2;
        strcpy(image.layers[0].blob.name, "a");
        strcpy(image.layers[1].blob.name, "b");
        r = oci_read_config(text, size, &image, err);
        break;
    default:
        return read_path(text, size, err);
    }
    if (r == 0)
        check_image(&image);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    int r;

    if (size == 0)
        return 0;
    r = read_any(data[0], (const char *)data + 1, size - 1, &err);
    if (r == 0 ? err.code != 0 : (err.code != -r || !err.message[0]))
        abort();
    return 0;
}
