/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON stays inside this file. */
#include "images/oci_json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

CLEANUP_WITH(cJSON *, cJSON_Delete)

#define DIGEST_PREFIX "sha256:"

static int parse(const char *text, size_t len, const char *what, cJSON **ret, struct err *err)
{
    cJSON *json;

    if (len > OCI_JSON_MAX)
        return err_set(err, EFBIG, "%s is over %u bytes", what, OCI_JSON_MAX);
    if (memchr(text, 0, len))
        return err_set(err, EINVAL, "%s holds a byte of zero", what);
    json = cJSON_ParseWithLength(text, len);
    if (!json)
        return err_set(err, EINVAL, "%s is not JSON", what);
    *ret = json;
    return 0;
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const cJSON *list_of(const cJSON *object, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsArray(list) ? list : NULL;
}

/* For a message: what a stranger wrote, without what a terminal would obey. */
static const char *shown(const char *text, char ret[80])
{
    size_t n = 0;

    for (; text && text[n] && n < 79; n++)
        ret[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
    ret[n] = '\0';
    return ret;
}

static int read_digest(const char *text, char ret[OCI_HEX_SIZE], struct err *err)
{
    const char *hex = text ? text + strlen(DIGEST_PREFIX) : "";
    char word[80];

    if (!text || strncmp(text, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) != 0)
        return err_set(err, EINVAL, "\"%s\" is no SHA-256 digest", shown(text, word));
    if (strlen(hex) != OCI_HEX_SIZE - 1 || strspn(hex, "0123456789abcdef") != OCI_HEX_SIZE - 1)
        return err_set(err, EINVAL, "\"%s\" is no SHA-256 digest", shown(text, word));
    strcpy(ret, hex);
    return 0;
}

static int read_descriptor(const cJSON *json, const char *what, struct oci_blob *ret,
                           struct err *err)
{
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(json, "size");
    int r;

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "%s is no descriptor", what);
    r = read_digest(text_of(json, "digest"), ret->digest, err);
    if (r < 0) {
        err_prefix(err, "%s", what);
        return r;
    }
    if (!cJSON_IsNumber(size) || size->valuedouble < 0 || size->valuedouble > 1e15)
        return err_set(err, EINVAL, "%s has no size", what);
    ret->size = (uint64_t)size->valuedouble;
    (void)snprintf(ret->name, sizeof(ret->name), "blobs/sha256/%s", ret->digest);
    return 0;
}

int oci_read_layout(const char *text, size_t len, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    int r = parse(text, len, "oci-layout", &json, err);
    const char *version;
    char word[80];

    if (r < 0)
        return r;
    version = text_of(json, "imageLayoutVersion");
    if (!version)
        return err_set(err, EINVAL, "oci-layout has no imageLayoutVersion");
    if (strcmp(version, "1.0.0") != 0)
        return err_set(err, EINVAL, "oci-layout is of version %s, not 1.0.0",
                       shown(version, word));
    return 0;
}

static bool is_type(const char *type, const char *oci, const char *docker)
{
    return type && (strcmp(type, oci) == 0 || strcmp(type, docker) == 0);
}

static bool is_index(const char *type)
{
    return is_type(type, "application/vnd.oci.image.index.v1+json",
                   "application/vnd.docker.distribution.manifest.list.v2+json");
}

static bool is_manifest(const char *type)
{
    return is_type(type, "application/vnd.oci.image.manifest.v1+json",
                   "application/vnd.docker.distribution.manifest.v2+json");
}

/* The first of the names that tools save an image by. */
static const char *title_of(const cJSON *entry)
{
    static const char *const keys[] = {"io.containerd.image.name",
                                       "org.opencontainers.image.ref.name"};
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(entry, "annotations");

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *title = text_of(notes, keys[i]);

        if (title && *title)
            return title;
    }
    return NULL;
}

/* A list of names for a message. */
struct told {
    char text[256];
    size_t n;
};

static void tell(struct told *told, const char *name)
{
    char word[80];
    size_t len = strlen(told->text);

    told->n++;
    if (len < sizeof(told->text) - 90)
        (void)snprintf(told->text + len, sizeof(told->text) - len, "%s%s", len ? ", " : "",
                       shown(name, word));
}

struct choosing {
    const cJSON *found;
    unsigned n_found;
    struct told images;    /* for this platform */
    struct told platforms; /* the others' */
};

static bool is_same(const cJSON *a, const cJSON *b)
{
    const char *one = text_of(a, "digest"), *other = text_of(b, "digest");

    return one && other && strcmp(one, other) == 0;
}

static void consider(struct choosing *c, const cJSON *entry)
{
    const cJSON *platform = cJSON_GetObjectItemCaseSensitive(entry, "platform");
    const char *os = text_of(platform, "os"), *cpu = text_of(platform, "architecture");
    const char *type = text_of(entry, "mediaType"), *title = title_of(entry);
    char both[128];

    /* Statements about other entries, and what is no image at all. */
    if ((os && strcmp(os, "unknown") == 0) || (type && !is_index(type) && !is_manifest(type)))
        return;
    if (os && cpu && (strcmp(os, "linux") != 0 || strcmp(cpu, "amd64") != 0)) {
        (void)snprintf(both, sizeof(both), "%.60s/%.60s", os, cpu);
        tell(&c->platforms, both);
        return;
    }
    /* One that was saved by several names is in the list with each. */
    if (c->found && is_same(c->found, entry))
        return;
    tell(&c->images, title ? title : "one without a name");
    c->found = entry;
    c->n_found++;
}

/* The title is shown, and is a line of a file. */
static void take_title(const char *title, char ret[OCI_TITLE_MAX])
{
    size_t n = 0;

    for (; title && title[n] && n < OCI_TITLE_MAX - 1; n++)
        ret[n] = title[n] > ' ' && title[n] < 0x7f ? title[n] : '?';
    ret[n] = '\0';
}

static int settle(const struct choosing *c, struct oci_choice *ret, struct err *err)
{
    const char *title, *type;
    int r;

    if (c->n_found == 0 && c->platforms.n > 0)
        return err_set(err, ENOENT, "there is nothing for linux/amd64 in it, only for %s",
                       c->platforms.text);
    if (c->n_found == 0)
        return err_set(err, ENOENT, "the index names no image");
    if (c->n_found > 1)
        return err_set(err, ENOTUNIQ, "it holds several images (%s): save one alone",
                       c->images.text);
    r = read_descriptor(c->found, "the entry of the index", &ret->blob, err);
    if (r < 0)
        return r;
    title = title_of(c->found);
    type = text_of(c->found, "mediaType");
    ret->is_index = is_index(type);
    take_title(title, ret->title);
    return 0;
}

int oci_read_index(const char *text, size_t len, struct oci_choice *ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    struct oci_choice choice = {0};
    struct choosing choosing = {0};
    const cJSON *list, *entry;
    int r = parse(text, len, "the index", &json, err);

    if (r < 0)
        return r;
    list = list_of(json, "manifests");
    if (!list)
        return err_set(err, EINVAL, "the index has no list of manifests");
    if (cJSON_GetArraySize(list) > (int)OCI_LISTED_MAX)
        return err_set(err, E2BIG, "the index lists more than %u images", OCI_LISTED_MAX);
    cJSON_ArrayForEach(entry, list)
        consider(&choosing, entry);
    r = settle(&choosing, &choice, err);
    if (r == 0)
        *ret = choice;
    return r;
}

/* Layers that only a registry has, or only the holder of a key can read. */
static int check_layer_type(const char *type, struct err *err)
{
    char word[80];

    if (type && strstr(type, "+encrypted"))
        return err_set(err, EINVAL, "a layer is encrypted (%s)", shown(type, word));
    if (type && !strstr(type, "tar"))
        return err_set(err, EINVAL, "a layer is no tar (%s): this is no container image",
                       shown(type, word));
    return 0;
}

static int check_n_layers(int n, struct err *err)
{
    if (n == 0)
        return err_set(err, EINVAL, "the image has no layers");
    if (n > (int)OCI_LAYERS_MAX)
        return err_set(err, E2BIG, "the image has %d layers, more than %u", n, OCI_LAYERS_MAX);
    return 0;
}

int oci_read_manifest(const char *text, size_t len, struct oci_image *ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const cJSON *layers, *layer;
    int r = parse(text, len, "the manifest", &json, err);

    if (r < 0)
        return r;
    memset(ret, 0, sizeof(*ret));
    layers = list_of(json, "layers");
    if (!layers)
        return err_set(err, EINVAL, "the manifest has no list of layers");
    r = check_n_layers(cJSON_GetArraySize(layers), err);
    if (r < 0)
        return r;
    r = read_descriptor(cJSON_GetObjectItemCaseSensitive(json, "config"),
                        "the manifest's configuration", &ret->config, err);
    if (r < 0)
        return r;
    cJSON_ArrayForEach(layer, layers) {
        r = check_layer_type(text_of(layer, "mediaType"), err);
        if (r < 0)
            return r;
        r = read_descriptor(layer, "a layer", &ret->layers[ret->n_layers].blob, err);
        if (r < 0)
            return r;
        ret->n_layers++;
    }
    return 0;
}

/* A blob that is named by its path. */
static int read_name(const char *text, const char *what, struct oci_blob *ret, struct err *err)
{
    char path[OCI_PATH_MAX];
    int r;

    if (!text)
        return err_set(err, EINVAL, "%s is no text", what);
    r = oci_path(text, path, err);
    if (r < 0) {
        err_prefix(err, "%s", what);
        return r;
    }
    if (!*path || strlen(path) >= sizeof(ret->name))
        return err_set(err, EINVAL, "%s names no file", what);
    strcpy(ret->name, path);
    ret->size = OCI_SIZE_ABSENT;
    return 0;
}

static int read_saved_one(const cJSON *one, struct oci_image *ret, struct err *err)
{
    const cJSON *layers = list_of(one, "Layers"), *layer;
    const cJSON *tag = cJSON_GetArrayItem(list_of(one, "RepoTags"), 0);
    const char *title = cJSON_GetStringValue(tag);
    int r;

    if (!layers)
        return err_set(err, EINVAL, "manifest.json has no list of layers");
    r = check_n_layers(cJSON_GetArraySize(layers), err);
    if (r < 0)
        return r;
    r = read_name(text_of(one, "Config"), "the configuration of manifest.json", &ret->config,
                  err);
    if (r < 0)
        return r;
    cJSON_ArrayForEach(layer, layers) {
        r = read_name(cJSON_GetStringValue(layer), "a layer of manifest.json",
                      &ret->layers[ret->n_layers].blob, err);
        if (r < 0)
            return r;
        ret->n_layers++;
    }
    take_title(title, ret->title);
    return 0;
}

int oci_read_saved(const char *text, size_t len, struct oci_image *ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    int n, r = parse(text, len, "manifest.json", &json, err);
    struct told told = {0};
    const cJSON *one;

    if (r < 0)
        return r;
    memset(ret, 0, sizeof(*ret));
    if (!cJSON_IsArray(json))
        return err_set(err, EINVAL, "manifest.json is no list of images");
    n = cJSON_GetArraySize(json);
    if (n == 0)
        return err_set(err, EINVAL, "manifest.json names no image");
    if (n == 1)
        return read_saved_one(cJSON_GetArrayItem(json, 0), ret, err);
    if (n > (int)OCI_LISTED_MAX)
        return err_set(err, E2BIG, "manifest.json lists more than %u images", OCI_LISTED_MAX);
    cJSON_ArrayForEach(one, json) {
        const char *title =
            cJSON_GetStringValue(cJSON_GetArrayItem(list_of(one, "RepoTags"), 0));

        tell(&told, title ? title : "one without a name");
    }
    return err_set(err, ENOTUNIQ, "it holds several images (%s): save one alone", told.text);
}

static int check_platform(const cJSON *json, struct err *err)
{
    const char *os = text_of(json, "os"), *cpu = text_of(json, "architecture");
    char first[80], second[80];

    if (!os || !cpu)
        return err_set(err, EINVAL, "the configuration does not say what platform it is for");
    if (strcmp(os, "linux") != 0 || strcmp(cpu, "amd64") != 0)
        return err_set(err, ENOENT, "the image is for %s/%s, not for linux/amd64",
                       shown(os, first), shown(cpu, second));
    return 0;
}

int oci_read_config(const char *text, size_t len, struct oci_image *image, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const cJSON *ids, *id;
    unsigned n = 0;
    int r = parse(text, len, "the configuration", &json, err);

    if (r < 0)
        return r;
    r = check_platform(json, err);
    if (r < 0)
        return r;
    ids = list_of(cJSON_GetObjectItemCaseSensitive(json, "rootfs"), "diff_ids");
    if (!ids)
        return err_set(err, EINVAL, "the configuration has no list of diff_ids");
    if (cJSON_GetArraySize(ids) != (int)image->n_layers)
        return err_set(err, EINVAL, "the configuration is of %d layers, the manifest of %u",
                       cJSON_GetArraySize(ids), image->n_layers);
    cJSON_ArrayForEach(id, ids) {
        r = read_digest(cJSON_GetStringValue(id), image->layers[n++].diff_id, err);
        if (r < 0) {
            err_prefix(err, "a layer of the configuration");
            return r;
        }
    }
    return 0;
}

/* Appends a component. */
static int append(char *path, size_t *at, const char *part, size_t len)
{
    if (*at + len + 2 > OCI_PATH_MAX)
        return -E2BIG;
    if (*at > 0)
        path[(*at)++] = '/';
    memcpy(path + *at, part, len);
    *at += len;
    path[*at] = '\0';
    return 0;
}

int oci_path(const char *name, char ret[OCI_PATH_MAX], struct err *err)
{
    size_t at = 0, depth = 0;
    char word[80];

    ret[0] = '\0';
    if (!*name)
        return err_set(err, EINVAL, "an empty path");
    if (*name == '/')
        return err_set(err, EINVAL, "the absolute path \"%s\"", shown(name, word));
    for (const char *part = name; *part;) {
        size_t len = strcspn(part, "/");

        if (len == 2 && part[0] == '.' && part[1] == '.')
            return err_set(err, EINVAL, "\"..\" in the path \"%s\"", shown(name, word));
        if (len > NAME_MAX)
            return err_set(err, E2BIG, "a name of more than %d bytes in the path \"%s\"",
                           NAME_MAX, shown(name, word));
        if (len > 0 && !(len == 1 && part[0] == '.')) {
            if (append(ret, &at, part, len) < 0)
                return err_set(err, E2BIG, "a path of more than %u bytes, \"%s…\"",
                               OCI_PATH_MAX - 1, shown(name, word));
            depth++;
        }
        part += len + (part[len] == '/');
    }
    if (depth > OCI_DEPTH_MAX)
        return err_set(err, E2BIG, "more than %u folders in one another in the path \"%s…\"",
                       OCI_DEPTH_MAX, shown(name, word));
    return 0;
}

#define MARK        ".wh."
#define MARK_NOTES  ".wh..wh."
#define MARK_OPAQUE ".wh..wh..opq"

int oci_take_mark(char path[OCI_PATH_MAX], enum oci_mark *ret, struct err *err)
{
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *gone = name + strlen(MARK);
    char word[80];

    *ret = OCI_MARK_NONE;
    if (strncmp(name, MARK, strlen(MARK)) != 0)
        return 0;
    if (strncmp(name, MARK_NOTES, strlen(MARK_NOTES)) == 0) {
        *ret = strcmp(name, MARK_OPAQUE) == 0 ? OCI_MARK_OPAQUE : OCI_MARK_IGNORED;
        *(slash ? slash : path) = '\0';
        return 0;
    }
    if (!*gone || strcmp(gone, ".") == 0 || strcmp(gone, "..") == 0)
        return err_set(err, EINVAL, "the whiteout \"%s\" is of nothing", shown(path, word));
    *ret = OCI_MARK_GONE;
    memmove(name, gone, strlen(gone) + 1);
    return 0;
}
