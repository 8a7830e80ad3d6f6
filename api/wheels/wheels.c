/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/wheels.h"

#include "api/skill/content.h"
#include "api/skill/entry.h"
#include "api/skill/file_names.h"
#include "api/skill/sha256.h"
#include "api/wheels/layer.h"
#include "api/wheels/resolve.h"
#include "api/wheels/wheel_file.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where nothing is known of the image, it is the one that comes with this version. */
#define PYTHON_MINOR      11u
#define PYTHON_MICRO      2u
#define PACKAGES_TEXT_MAX (64u * 1024)

const struct archive_limits wheels_limits_default = {
    .archive_bytes = 256u << 20,
    .expanded_bytes = 256u << 20,
    .entries = 20000,
    .ratio = 100,
};

struct work {
    const struct wheels *in;
    struct marker_python python;
    struct content_walk walk;
    uint64_t *places; /* owned: in the skill's tar, of its entries' content */
    size_t placed;
    size_t own; /* wheels of the skill */
    struct wheel_list list;
    struct wanted_list wanted;
    struct buf text; /* of the file that is being read */
    struct resolved resolved;
    int house_fd;
    uint64_t copied; /* the largest wheel of the skill's that was a file of its own so far */
};

static void work_finish(struct work *w)
{
    free(w->places);
    wheel_list_finish(&w->list);
    wanted_finish(&w->wanted);
    buf_finish(&w->text);
    free(w->resolved.wheels);
    fd_close(&w->house_fd);
}
#define _cleanup_work_ __attribute__((cleanup(work_finish)))

/* Entries stand in the tar in the order of the list. */
static int note_place(void *user, const struct tar_header *header)
{
    struct work *w = user;
    const struct skill_archive *archive = w->in->archive;

    if (w->placed == archive->n_entries ||
        strcmp(archive->entries[w->placed].path, header->path) != 0)
        return -EINVAL;
    w->places[w->placed++] = w->walk.at;
    return 0;
}

static int find_places(struct work *w, struct err *err)
{
    int r;

    w->walk = (struct content_walk){.each = note_place, .user = w};
    w->places = calloc(w->in->archive->n_entries + 1, sizeof(*w->places));
    if (!w->places)
        return err_no_memory(err);
    r = content_walk(w->in->tar_fd, &w->walk, err);
    if (r == 0 && w->placed != w->in->archive->n_entries)
        r = -EIO;
    return r < 0 ? err_set_errno(err, r == -ENOMEM ? ENOMEM : EIO, "cannot read the skill") : 0;
}

static size_t count_own(const struct skill_archive *archive)
{
    size_t n = 0;

    for (size_t i = 0; i < archive->n_entries; i++)
        n += skill_archive_is_wheel(&archive->entries[i]);
    return n;
}

/* Adds a wheel by its file's name; shown is what messages call it. */
static int add_wheel(struct work *w, enum wheel_from from, const char *file, const char *shown,
                     size_t place, struct err *err)
{
    struct tags_wheel tags;
    char why[TAGS_WHY_SIZE] = "";
    struct wheel wheel = {.from = from, .place = place, .file = (char *)(uintptr_t)shown};
    int r = tags_parse(file, &tags, err);

    if (r < 0)
        return r;
    wheel.rank = tags_rank(&tags, w->python.minor, why);
    wheel.why = wheel.rank < 0 ? why : NULL;
    wheel.build = tags.build;
    wheel.version = tags.version;
    memcpy(wheel.name, tags.name, sizeof(wheel.name));
    memcpy(wheel.version_text, tags.version_text, sizeof(wheel.version_text));
    return wheel_list_add(&w->list, &wheel) < 0 ? err_no_memory(err) : 0;
}

static int add_own(struct work *w, struct err *err)
{
    const struct skill_archive *archive = w->in->archive;
    int r = 0;

    if (w->own > WHEELS_MAX)
        return err_set(err, EINVAL, "%s/ has more than %u wheels", WHEELS_FOLDER, WHEELS_MAX);
    for (size_t i = 0; r == 0 && i < archive->n_entries; i++) {
        const char *path = archive->entries[i].path;

        if (skill_archive_is_wheel(&archive->entries[i]))
            r = add_wheel(w, WHEEL_OF_SKILL, path + sizeof(WHEELS_FOLDER), path, i, err);
    }
    return r;
}

/* What is in the folder and is no wheel is the operator's business. */
static int add_house(struct work *w, struct err *err)
{
    DIR *folder;
    struct dirent *entry;
    int fd, r = 0;

    if (!w->in->wheelhouse[0])
        return 0;
    w->house_fd = open(w->in->wheelhouse, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = w->house_fd < 0 ? -1 : fcntl(w->house_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open the wheelhouse %s", w->in->wheelhouse);
    folder = fdopendir(fd);
    if (!folder) {
        fd_close(&fd);
        return err_no_memory(err);
    }
    for (size_t n = 0; r == 0 && n < WHEELS_HOUSE_MAX && (entry = readdir(folder));) {
        char shown[TAGS_FILE_MAX + 16];

        (void)snprintf(shown, sizeof(shown), "wheelhouse/%.255s", entry->d_name);
        r = add_wheel(w, WHEEL_OF_HOUSE, entry->d_name, shown, 0, NULL);
        n += r == 0;
        r = r == -EINVAL ? 0 : r;
    }
    (void)closedir(folder);
    return r < 0 ? err_no_memory(err) : 0;
}

static int add_image(struct work *w, struct err *err)
{
    const struct skill_strings *packages = &w->in->image->packages;

    for (size_t i = 0; i < packages->len; i++) {
        const char *space = strchr(packages->items[i], ' ');
        struct wheel wheel = {.from = WHEEL_OF_IMAGE,
                              .file = (char *)(uintptr_t) "the image's"};

        if (!space ||
            tags_normalize(packages->items[i], (size_t)(space - packages->items[i]),
                           wheel.name) < 0 ||
            pep440_parse(space + 1, strlen(space + 1), &wheel.version) < 0)
            continue;
        (void)snprintf(wheel.version_text, sizeof(wheel.version_text), "%s", space + 1);
        if (wheel_list_add(&w->list, &wheel) < 0)
            return err_no_memory(err);
    }
    return 0;
}

/* A file of the skill, as wanted.h asks for it. */
static int read_text(void *ctx, const char *path, const char **ret_text, size_t *ret_len)
{
    struct work *w = ctx;
    const struct archive_entry_info *entry = skill_archive_find(w->in->archive, path);
    int r;

    if (!entry || entry->type != ARCHIVE_ENTRY_FILE)
        return -ENOENT;
    if (entry->size > WANTED_FILE_MAX)
        return -E2BIG;
    buf_clear(&w->text);
    r = buf_reserve(&w->text, (size_t)entry->size);
    if (r < 0)
        return r;
    if (fd_pread_full(w->in->tar_fd, w->text.data, (size_t)entry->size,
                      w->places[entry - w->in->archive->entries]) != (ssize_t)entry->size)
        return -EIO;
    *ret_text = entry->size > 0 ? (const char *)w->text.data : "";
    *ret_len = (size_t)entry->size;
    return 0;
}

static int want_file(struct work *w, const char *path, struct err *err)
{
    const struct wanted_source source = {read_text, w};
    const struct archive_entry_info *entry = skill_archive_find(w->in->archive, path);

    return entry && entry->type == ARCHIVE_ENTRY_FILE
               ? wanted_read_file(&w->wanted, path, &source, err)
               : 0;
}

/* The path of the entry's file; "": it has none that is known before it is run. */
static int find_script(const struct work *w, char ret[NAMES_PATH_MAX + 4])
{
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    int r = skill_entry_resolve(w->in->skill, w->in->archive, NULL, NULL, &entry, NULL);

    ret[0] = '\0';
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    (void)snprintf(ret, NAMES_PATH_MAX, "%s", entry.entry);
    for (char *p = ret; entry.mode == PROTO_MODE_MODULE && *p; p++)
        *p = *p == '.' ? '/' : *p;
    if (entry.mode == PROTO_MODE_MODULE)
        strcat(ret, ".py");
    return 0;
}

static int want_script(struct work *w, const char *script, struct err *err)
{
    const char *text;
    size_t len;
    int r = read_text(w, script, &text, &len);

    if (r == -ENOENT || r == -E2BIG)
        return 0;
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the skill");
    return wanted_read_script(&w->wanted, script, text, len, err);
}

/* Who brings wheels and does not say which wants all of them. */
static int want_all(struct work *w, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->list.n; i++) {
        const struct wheel *wheel = &w->list.items[i];
        bool again = false;

        for (size_t j = 0; j < i && !again; j++)
            again = strcmp(w->list.items[j].name, wheel->name) == 0;
        if (wheel->from == WHEEL_OF_SKILL && !again)
            r = wanted_add(&w->wanted, "the skill, with a wheel of it,", wheel->name,
                           strlen(wheel->name), err);
    }
    return r;
}

static int find_wanted(struct work *w, struct err *err)
{
    char script[NAMES_PATH_MAX + 4], beside[2 * NAMES_PATH_MAX];
    const char *slash;
    int r = find_script(w, script);

    if (r < 0)
        return err_no_memory(err);
    r = want_file(w, "requirements.txt", err);
    slash = strrchr(script, '/');
    if (r == 0 && slash) {
        (void)snprintf(beside, sizeof(beside), "%.*srequirements.txt",
                       (int)(slash + 1 - script), script);
        r = want_file(w, beside, err);
    }
    if (r == 0 && script[0])
        r = want_script(w, script, err);
    return r == 0 && w->wanted.n == 0 ? want_all(w, err) : r;
}

/* There is one copy at a time: the room of the largest is enough for all. */
static int make_room(struct work *w, uint64_t bytes, struct err *err)
{
    int r =
        bytes > w->copied ? w->in->spool->grow(w->in->spool->ctx, bytes - w->copied, err) : 0;

    if (r == 0 && bytes > w->copied)
        w->copied = bytes;
    return r;
}

/* Copies a part of the skill's tar to a file of its own. */
static int copy_out(struct work *w, const struct wheel *wheel, int to, struct err *err)
{
    const struct archive_entry_info *entry = &w->in->archive->entries[wheel->place];
    char chunk[64 * 1024];
    int r = make_room(w, entry->size, err);

    for (uint64_t at = 0; r == 0 && at < entry->size;) {
        uint64_t left = entry->size - at;
        size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);

        if (fd_pread_full(w->in->tar_fd, chunk, n, w->places[wheel->place] + at) != (ssize_t)n)
            return err_set(err, EIO, "cannot read the skill");
        r = fd_write_full(to, chunk, n);
        if (r < 0)
            return err_set_errno(err, -r, "cannot write a wheel");
        at += n;
    }
    return r;
}

/* A file that is the wheel alone. The descriptor is the caller's; or -errno. */
static int open_wheel(struct work *w, const struct wheel *wheel, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r;

    if (wheel->from == WHEEL_OF_HOUSE) {
        fd = openat(w->house_fd, wheel->file + sizeof("wheelhouse"), O_RDONLY | O_CLOEXEC);
        return fd < 0 ? err_set_errno(err, errno, "cannot open %s", wheel->file)
                      : fd_steal(&fd);
    }
    fd = w->in->temporary(w->in->ctx);
    if (fd < 0)
        return err_set_errno(err, -fd, "cannot create a temporary file");
    r = copy_out(w, wheel, fd, err);
    return r < 0 ? r : fd_steal(&fd);
}

static int load(void *ctx, struct wheel *wheel, struct err *err)
{
    struct work *w = ctx;
    _cleanup_fd_ int fd = open_wheel(w, wheel, err);
    int r = fd < 0 ? fd : w->in->spool->grow(w->in->spool->ctx, METADATA_BYTES_MAX, err);

    return r < 0 ? r
                 : wheel_file_metadata(fd, w->in->limits->entries, &wheel->metadata,
                                       &wheel->work, err);
}

static int digest(void *ctx, struct wheel *wheel, struct err *err)
{
    _cleanup_fd_ int fd = open_wheel(ctx, wheel, err);
    int r = fd < 0 ? fd : sha256_of_fd(fd, wheel->sha256);

    return fd < 0 || r == 0 ? r : err_set_errno(err, -r, "cannot read %s", wheel->file);
}

static bool is_chosen(const struct work *w, const char *name)
{
    for (size_t i = 0; i < w->resolved.n; i++) {
        if (strcmp(w->list.items[w->resolved.wheels[i]].name, name) == 0)
            return true;
    }
    return false;
}

static int warn(const struct work *w, struct skill_strings *warnings)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->wanted.warnings.len; i++)
        r = skill_warn(warnings, "%s", w->wanted.warnings.items[i]);
    for (size_t i = 0; r == 0 && i < w->list.n; i++) {
        const struct wheel *wheel = &w->list.items[i];

        if (wheel->from == WHEEL_OF_SKILL && !is_chosen(w, wheel->name))
            r = skill_warn(warnings, "%s is left out: nothing requires it",
                           names_shown(wheel->file).text);
    }
    return r;
}

static int write_packages(const struct work *w, struct wheels_layer *ret, struct err *err)
{
    static const char *const froms[] = {[WHEEL_OF_SKILL] = "skill",
                                        [WHEEL_OF_IMAGE] = "image",
                                        [WHEEL_OF_HOUSE] = "wheelhouse"};
    struct json_writer out = json_writer_init(PACKAGES_TEXT_MAX);
    struct buf text;
    int r;

    json_write_open(&out, NULL, '[');
    for (size_t i = 0; i < w->resolved.n; i++) {
        const struct wheel *wheel = &w->list.items[w->resolved.wheels[i]];
        const char *slash = strchr(wheel->file, '/');

        json_write_open(&out, NULL, '{');
        json_write_string(&out, "name", wheel->name);
        json_write_string(&out, "version", wheel->version_text);
        json_write_string(&out, "from", froms[wheel->from]);
        json_write_string(&out, "file", slash ? slash + 1 : NULL);
        json_write_close(&out, '}');
    }
    json_write_close(&out, ']');
    r = json_writer_end(&out, &text);
    if (r < 0)
        return r == -E2BIG ? err_set(err, EINVAL, "the skill requires too many packages")
                           : err_no_memory(err);
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    ret->packages = buf_cstr(&text) ? (char *)text.data : NULL;
    ret->python_minor = w->python.minor;
    return ret->packages ? 0 : err_no_memory(err);
}

static int make_layer(struct work *w, struct wheels_layer *ret, struct err *err)
{
    struct layer *layer = layer_create(w->in->limits, w->in->spool);
    size_t n = 0;
    int r = layer ? 0 : err_no_memory(err);

    for (size_t i = 0; r == 0 && i < w->resolved.n; i++) {
        const struct wheel *wheel = &w->list.items[w->resolved.wheels[i]];
        _cleanup_fd_ int fd = -1;

        if (wheel->from == WHEEL_OF_IMAGE)
            continue;
        fd = open_wheel(w, wheel, err);
        r = fd < 0 ? fd : layer_add(layer, fd, wheel->file, err);
        n++;
    }
    if (r == 0 && n > 0)
        r = layer_write(layer, w->in->layer_fd, ret->digest, &ret->bytes, err);
    layer_destroy(layer);
    return r;
}

static int prepare(struct work *w, struct wheels_layer *ret, struct skill_strings *warnings,
                   struct err *err)
{
    const struct resolve resolve = {.wheels = &w->list,
                                    .wanted = &w->wanted,
                                    .python = w->python,
                                    .load = load,
                                    .digest = digest,
                                    .ctx = w};
    int r = find_places(w, err);

    if (r < 0)
        return r;
    r = add_own(w, err);
    if (r < 0)
        return r;
    r = find_wanted(w, err);
    if (r < 0 || w->wanted.n == 0)
        return r;
    r = add_house(w, err);
    if (r < 0)
        return r;
    r = add_image(w, err);
    if (r < 0)
        return r;
    r = resolve_run(&resolve, &w->resolved, err);
    if (r < 0)
        return r;
    if (warn(w, warnings) < 0)
        return err_no_memory(err);
    r = write_packages(w, ret, err);
    return r < 0 ? r : make_layer(w, ret, err);
}

int wheels_prepare(const struct wheels *wheels, struct wheels_layer *ret,
                   struct skill_strings *warnings, struct err *err)
{
    const struct image_manifest *image = wheels->image;
    const char *obstacle = image_manifest_obstacle(image);
    _cleanup_wheels_layer_ struct wheels_layer layer = {.bytes = 0};
    _cleanup_work_ struct work w = {.in = wheels,
                                    .python = {PYTHON_MINOR, PYTHON_MICRO},
                                    .own = count_own(wheels->archive),
                                    .text = buf_init(WANTED_FILE_MAX),
                                    .house_fd = -1};
    struct err why = {0};
    int r;

    *ret = (struct wheels_layer){.bytes = 0};
    if (w.own == 0 && (!wheels->wheelhouse[0] || obstacle))
        return 0;
    if (obstacle)
        return err_set(err, EINVAL, "%s/ has wheels, and the image %s %s", WHEELS_FOLDER,
                       image->name, obstacle);
    if (image->known)
        w.python = (struct marker_python){image->python_minor, image->python_micro};
    r = prepare(&w, &layer, warnings, &why);
    if (r == 0) {
        *ret = layer;
        layer = (struct wheels_layer){.bytes = 0};
        return 0;
    }
    if (w.own == 0 && (r == -EINVAL || r == -EFBIG))
        return skill_warn(warnings, "it runs without packages of the wheelhouse: %s",
                          why.message) < 0
                   ? err_no_memory(err)
                   : 0;
    return why.code ? err_set(err, -r, "%s", why.message) : r;
}

void wheels_write_packages(const char *packages, struct json_writer *w)
{
    const char *text = packages ? packages : "[]";

    json_write_value(w, "packages", (struct json_slice){text, strlen(text)});
}

void wheels_layer_finish(struct wheels_layer *layer)
{
    free(layer->packages);
    *layer = (struct wheels_layer){.bytes = 0};
}
