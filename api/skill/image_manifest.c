/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/image_manifest.h"

#include "api/skill/duration.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t image_name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

bool image_name_in(const char *file, const char *end, char ret[IMAGE_NAME_SIZE])
{
    const size_t n = image_name_length(file);
    const bool is_one = n > 0 && n < IMAGE_NAME_SIZE && strcmp(file + n, end) == 0;

    (void)snprintf(ret, IMAGE_NAME_SIZE, "%.*s", is_one ? (int)n : 0, file);
    return is_one;
}

/* What is listed goes into JSON, logs and terminals. */
static bool is_text(const char *line)
{
    return text_is_plain(line) && utf8_valid(line, strlen(line));
}

static int take_python(struct image_manifest *manifest, const char *version)
{
    unsigned minor = 0, micro = 0;
    int end = 0, n = sscanf(version, "%3u%n.%3u%n", &minor, &end, &micro, &end);

    if (n < 1 || strspn(version, "0123456789.") != (size_t)end || version[end])
        return -EINVAL;
    manifest->python_minor = minor;
    manifest->python_micro = micro;
    return 0;
}

static int take_language(struct image_manifest *manifest, const char *text)
{
    if (strncmp(text, "python 3.", strlen("python 3.")) == 0)
        return take_python(manifest, text + strlen("python 3."));
    return sscanf(text, "node %15s", manifest->node) == 1 ? 0 : -EINVAL;
}

static int take_memory(struct image_manifest *manifest, const char *text)
{
    uint64_t bytes = 0;

    if (size_parse(text, &bytes) < 0 || bytes < IMAGE_MEMORY_MIN || bytes > IMAGE_MEMORY_MAX)
        return -EINVAL;
    manifest->memory_bytes = bytes;
    return 0;
}

/* Kinds that a later version lists are passed over. */
static int take_line(struct image_manifest *manifest, const char *line)
{
    const struct {
        const char *kind;
        struct skill_strings *list;
    } lists[] = {{"standard", &manifest->standard},
                 {"module", &manifest->modules},
                 {"package", &manifest->packages},
                 {"program", &manifest->programs},
                 {"node", &manifest->node_modules}};
    size_t len = strcspn(line, " ");

    if (len == 0 || line[len] == '\0' || line[len + 1] == '\0' || !is_text(line))
        return -EINVAL;
    if (strncmp(line, "language ", len + 1) == 0)
        return take_language(manifest, line + len + 1);
    if (strncmp(line, "memory ", len + 1) == 0)
        return take_memory(manifest, line + len + 1);
    manifest->is_pypy = manifest->is_pypy || strncmp(line, "pypy ", len + 1) == 0;
    manifest->python_is_alone = manifest->python_is_alone || strcmp(line, "alone python") == 0;
    manifest->warm_python = manifest->warm_python || strcmp(line, "warm python") == 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (strlen(lists[i].kind) == len && strncmp(line, lists[i].kind, len) == 0)
            return skill_strings_insert(lists[i].list, line + len + 1,
                                        IMAGE_MANIFEST_LINES_MAX);
    return 0;
}

int image_manifest_bring(struct image_manifest *manifest, const char *line)
{
    static const char *const kinds[] = {"module ", "program ", "node "};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t n = strlen(kinds[i]);

        if (strncmp(line, kinds[i], n) == 0 && !strchr(line + n, ' '))
            return take_line(manifest, line);
    }
    return -EINVAL;
}

static int take_lines(struct image_manifest *manifest, char *text, size_t len, struct err *err)
{
    for (size_t line = 1; len > 0; line++) {
        char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;
        int r;

        if (line > IMAGE_MANIFEST_LINES_MAX)
            return err_set(err, EFBIG, "more than %u lines", IMAGE_MANIFEST_LINES_MAX);
        if (!end || memchr(text, 0, n))
            return err_set(err, EINVAL, "line %zu is no line of text", line);
        *end = '\0';
        r = take_line(manifest, text);
        if (r == -ENOMEM)
            return err_no_memory(err);
        if (r < 0)
            return err_set(err, EINVAL, "line %zu says nothing that an image has", line);
        text += n + 1;
        len -= n + 1;
    }
    return 0;
}

static int read_text(int fd, struct image_manifest *manifest, struct err *err)
{
    _cleanup_free_ char *text = malloc(IMAGE_MANIFEST_BYTES_MAX + 1);
    ssize_t len = text ? fd_pread_full(fd, text, IMAGE_MANIFEST_BYTES_MAX + 1, 0) : -ENOMEM;

    if (len < 0)
        return err_set_errno(err, (int)-len, "cannot read it");
    if (len > (ssize_t)IMAGE_MANIFEST_BYTES_MAX)
        return err_set(err, EFBIG, "over %u bytes", IMAGE_MANIFEST_BYTES_MAX);
    return take_lines(manifest, text, (size_t)len, err);
}

int image_manifest_read(const char *share, const char *image, struct image_manifest *ret,
                        struct err *err)
{
    _cleanup_image_manifest_ struct image_manifest manifest = {.known = true};
    char path[PATH_MAX];
    _cleanup_fd_ int fd = -1;
    size_t len = image_name_length(image);
    int n = snprintf(path, sizeof(path), "%s/%.*s.manifest", share, (int)len, image), r;

    /* A skill may say anything. */
    if (image[len] || len >= IMAGE_NAME_SIZE) {
        *ret = (struct image_manifest){.known = false};
        return 0;
    }
    if (n < 0 || n >= (int)sizeof(path))
        return err_set(err, ENAMETOOLONG, "the path of the image's manifest is too long");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *ret = (struct image_manifest){.known = false};
        return 0;
    }
    if (fd < 0)
        return err_set_errno(err, errno, "%s", path);
    r = read_text(fd, &manifest, err);
    if (r < 0) {
        err_prefix(err, "%s", path);
        return r;
    }
    (void)snprintf(manifest.name, sizeof(manifest.name), "%s", image);
    *ret = manifest;
    manifest = (struct image_manifest){0};
    return 0;
}

int image_manifest_copy(const struct image_manifest *manifest, struct image_manifest *ret)
{
    struct image_manifest copy = *manifest;

    copy.standard = copy.modules = copy.packages = copy.programs = copy.node_modules =
        (struct skill_strings){0};
    if (skill_strings_append(&copy.standard, &manifest->standard) < 0 ||
        skill_strings_append(&copy.modules, &manifest->modules) < 0 ||
        skill_strings_append(&copy.packages, &manifest->packages) < 0 ||
        skill_strings_append(&copy.programs, &manifest->programs) < 0 ||
        skill_strings_append(&copy.node_modules, &manifest->node_modules) < 0) {
        image_manifest_finish(&copy);
        return -ENOMEM;
    }
    *ret = copy;
    return 0;
}

void image_manifest_finish(struct image_manifest *manifest)
{
    skill_strings_finish(&manifest->standard);
    skill_strings_finish(&manifest->modules);
    skill_strings_finish(&manifest->packages);
    skill_strings_finish(&manifest->programs);
    skill_strings_finish(&manifest->node_modules);
    *manifest = (struct image_manifest){0};
}

static int compare(const void *key, const void *item)
{
    return strcmp(key, *(char *const *)item);
}

bool image_manifest_has(const struct skill_strings *list, const char *text)
{
    return list->len > 0 &&
           bsearch(text, list->items, list->len, sizeof(*list->items), compare);
}

bool image_manifest_runs(const struct image_manifest *manifest, const char *lang)
{
    return strcmp(lang, "python") == 0 ? manifest->python_minor > 0
                                       : image_manifest_has(&manifest->programs, lang);
}

/* A space comes before all that a name may have: those of a name stand where it alone would. */
static int compare_name(const void *key, const void *item)
{
    const char *name = key, *line = *(char *const *)item;
    const size_t len = strlen(name);
    const int r = strncmp(name, line, len);

    return r || line[len] == ' ' ? r : -(line[len] != '\0');
}

/* What a list of "NAME" and "NAME VERSION" has behind a name, "" for nothing; NULL: no such. */
static const char *find_version(const struct skill_strings *list, const char *name)
{
    char *const *found = list->len > 0 ? bsearch(name, list->items, list->len,
                                                 sizeof(*list->items), compare_name)
                                       : NULL;
    const char *version = found ? *found + strlen(name) : NULL;

    return version && *version ? version + 1 : version;
}

const char *image_manifest_package(const struct image_manifest *manifest, const char *name)
{
    return find_version(&manifest->packages, name);
}

const char *image_manifest_node_module(const struct image_manifest *manifest, const char *name)
{
    return find_version(&manifest->node_modules, name);
}

const char *image_manifest_obstacle(const struct image_manifest *image)
{
    if (!image->known)
        return NULL;
    if (image->python_minor == 0)
        return "has no Python";
    if (image->is_pypy)
        return "has PyPy, not CPython";
    return image->python_is_alone
               ? "looks for none, as none does that was imported: put what is in them into "
                 "the container, or name an image that was made by a recipe"
               : NULL;
}
