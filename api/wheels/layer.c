/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/layer.h"

#include "api/skill/content.h"
#include "api/skill/file_names.h"
#include "api/skill/ingest.h"
#include "api/wheels/tags.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_LINE_MAX 256u
#define PYTHON_LINE     "#!/usr/bin/python3\n"
/* Of a file whose first line is written anew. */
#define SCRIPT_MAX       (1u << 20)
#define ENTRIES_TEXT_MAX (64u * 1024)
#define COMMANDS_MAX     256u /* of a wheel */

struct layer {
    struct ingest in;
    struct archive_limits limits; /* of what wheels hold, and not of their own size */
};

/* With what to do, where it is over a limit. */
static int explain(int r, const struct err *why, struct err *err)
{
    if (!why->code)
        return r == -ENOMEM ? err_no_memory(err) : r;
    return err_set(err, why->code, "%s%s", why->message,
                   r == -EFBIG ? "; all wheels of a skill together have limits.packages_bytes "
                                 "and limits.packages_entries: bring fewer or smaller ones, or "
                                 "have the operator raise these"
                               : "");
}

struct layer *layer_create(const struct archive_limits *limits,
                           const struct archive_spool *spool)
{
    struct layer *layer = calloc(1, sizeof(*layer));

    if (!layer)
        return NULL;
    layer->limits = *limits;
    layer->limits.archive_bytes = ARCHIVE_BYTES_MOST;
    layer->in = (struct ingest){.limits = &layer->limits, .spool = spool, .spool_fd = -1};
    return layer;
}

void layer_destroy(struct layer *layer)
{
    if (!layer)
        return;
    skill_archive_finish(&layer->in.archive);
    ingest_close_spool(&layer->in);
    free(layer);
}

/* What is behind NAME.data/KIND/, or NULL. */
static const char *behind_data(const char *path, const char *kind)
{
    const char *slash = strchr(path, '/');
    size_t len = strlen(kind);

    if (!slash || slash - path < 6 || strncmp(slash - 5, ".data", 5) != 0 ||
        strncmp(slash + 1, kind, len) != 0)
        return NULL;
    return slash[1 + len] == '/' || !slash[1 + len] ? slash + 1 + len : NULL;
}

/* Where an installer would put it; false for what it leaves out. */
static bool find_place(const struct archive_entry_info *entry, char ret[NAMES_PATH_MAX + 5])
{
    static const char *const kinds[] = {"purelib", "platlib", "data"};
    const char *path = entry->path, *scripts = behind_data(path, "scripts");
    const char *slash = strchr(path, '/'), *root = path;

    if (scripts) {
        (void)snprintf(ret, NAMES_PATH_MAX + 5, "bin%s", scripts);
        return true;
    }
    for (size_t i = 0; i < 3 && root == path; i++) {
        const char *rest = behind_data(path, kinds[i]);

        root = rest ? rest : root;
    }
    /* The folders themselves, and headers. */
    if (root == path && (slash ? slash : strchr(path, '\0')) - path > 5 &&
        strncmp((slash ? slash : strchr(path, '\0')) - 5, ".data", 5) == 0)
        return false;
    root += *root == '/';
    (void)snprintf(ret, NAMES_PATH_MAX + 5, "%s", root);
    return ret[0];
}

static int move_entry(struct archive_entry_info *entry, const char *place, struct err *err)
{
    char clean[NAMES_PATH_MAX + 1], *copy;
    int r = names_clean(place, clean, err);

    if (r < 0)
        return r;
    copy = strdup(clean);
    if (!copy)
        return err_no_memory(err);
    free(entry->path);
    entry->path = copy;
    return 0;
}

/* A program that begins with "#!python" is for the Python of who installs it. */
static int settle_script(struct layer *layer, size_t at, struct err *err)
{
    struct ingest *in = &layer->in;
    struct archive_entry_info *entry = &in->archive.entries[at], changed = *entry;
    char line[SCRIPT_LINE_MAX + 1] = "";
    size_t n = entry->size < SCRIPT_LINE_MAX ? (size_t)entry->size : SCRIPT_LINE_MAX, cut;
    _cleanup_free_ char *text = NULL, *path = NULL;
    int r = ingest_read_content(in, entry->offset, line, n, err);

    entry->executable = true;
    if (r < 0 || strncmp(line, "#!python", 8) != 0 || !strchr(line, '\n') ||
        entry->size > SCRIPT_MAX)
        return r;
    cut = strcspn(line, "\n") + 1;
    changed.size = entry->size - cut + sizeof(PYTHON_LINE) - 1;
    changed.executable = true;
    text = malloc((size_t)changed.size + 1);
    path = strdup(entry->path);
    if (!text || !path)
        return err_no_memory(err);
    memcpy(text, PYTHON_LINE, sizeof(PYTHON_LINE) - 1);
    r = ingest_read_content(in, entry->offset + cut, text + sizeof(PYTHON_LINE) - 1,
                            (size_t)entry->size - cut, err);
    if (r < 0)
        return r;
    changed.path = path;
    /* Its content in the spool is the new one's; the old entry goes. */
    r = ingest_add_file(in, &changed, text, err);
    if (r < 0)
        return r;
    entry = &in->archive.entries[at];
    entry->size = changed.size;
    entry->offset = in->archive.entries[in->archive.n_entries - 1].offset;
    skill_archive_entry_finish(&in->archive.entries[--in->archive.n_entries]);
    return 0;
}

/* "name = package.module:object" of a console script. */
static int add_command(struct layer *layer, char *line, struct err *err)
{
    char name[TAGS_NAME_MAX + 1], module[129], object[129], path[TAGS_NAME_MAX + 8];
    char text[1024];
    struct archive_entry_info entry = {
        .path = path, .type = ARCHIVE_ENTRY_FILE, .executable = true};
    int n;

    if (sscanf(line, " %128[A-Za-z0-9._-] = %128[A-Za-z0-9_.] : %128[A-Za-z0-9_.]", name,
               module, object) != 3 ||
        name[0] == '.')
        return 0;
    n = snprintf(text, sizeof(text),
                 PYTHON_LINE "import sys\n"
                             "from %s import %.*s\n"
                             "if __name__ == \"__main__\":\n"
                             "    sys.exit(%s())\n",
                 module, (int)strcspn(object, "."), object, object);
    (void)snprintf(path, sizeof(path), "bin/%s", name);
    entry.size = (uint64_t)n;
    return ingest_add_file(&layer->in, &entry, text, err);
}

/* The programs that a wheel asks its installer to make. */
static int add_commands(struct layer *layer, const struct archive_entry_info *entry,
                        struct err *err)
{
    _cleanup_free_ char *text = NULL;
    bool inside = false;
    unsigned n = 0;
    int r;

    if (entry->size > ENTRIES_TEXT_MAX)
        return 0;
    text = calloc(1, (size_t)entry->size + 1);
    if (!text)
        return err_no_memory(err);
    r = ingest_read_content(&layer->in, entry->offset, text, (size_t)entry->size, err);
    for (char *at = text, *line; r == 0 && n < COMMANDS_MAX && (line = strsep(&at, "\n"));) {
        line += strspn(line, " \t");
        if (*line == '[')
            inside = strncmp(line, "[console_scripts]", 17) == 0;
        else if (inside && *line && *line != '#') {
            r = add_command(layer, line, err);
            n++;
        }
    }
    return r;
}

static int settle_entry(struct layer *layer, size_t at, struct err *err)
{
    struct archive_entry_info *entry = &layer->in.archive.entries[at];
    const struct archive_entry_info seen = *entry;
    char place[NAMES_PATH_MAX + 5];
    bool script = behind_data(entry->path, "scripts") != NULL;
    int r;

    if (entry->type == ARCHIVE_ENTRY_LINK || entry->hard_link)
        return names_refuse(err, EINVAL, entry->path, "a wheel has no links");
    if (!find_place(entry, place))
        return 0;
    r = move_entry(entry, place, err);
    if (r < 0 || entry->type != ARCHIVE_ENTRY_FILE)
        return r;
    if (script)
        return settle_script(layer, at, err);
    return strchr(place, '/') && text_ends_with(place, ".dist-info/entry_points.txt")
               ? add_commands(layer, &seen, err)
               : 0;
}

/* Leaves out what an installer does. */
static void drop_unplaced(struct skill_archive *archive, size_t from)
{
    char place[NAMES_PATH_MAX + 5];
    size_t kept = from;

    for (size_t i = from; i < archive->n_entries; i++) {
        if (find_place(&archive->entries[i], place))
            archive->entries[kept++] = archive->entries[i];
        else
            skill_archive_entry_finish(&archive->entries[i]);
    }
    archive->n_entries = kept;
}

int layer_add(struct layer *layer, int fd, const char *file, struct err *err)
{
    struct skill_archive *archive = &layer->in.archive;
    size_t from = archive->n_entries, end;
    struct err why = {0};
    int r = ingest_read_more(&layer->in, fd, &why);

    drop_unplaced(archive, from);
    /* Programs that are made for it come behind. */
    end = archive->n_entries;
    for (size_t i = from; r == 0 && i < end; i++)
        r = settle_entry(layer, i, &why);
    if (r == 0)
        return 0;
    err_prefix(&why, "%s", names_shown(file).text);
    return explain(r, &why, err);
}

/* By path, and of one path in the order in which they came. */
static int compare_entries(const void *a, const void *b)
{
    const struct archive_entry_info *x = a, *y = b;
    int r = strcmp(x->path, y->path);

    return r ? r : (x->offset > y->offset) - (x->offset < y->offset);
}

/* Of a file that several wheels have the first stays. */
static void merge(struct skill_archive *archive)
{
    struct archive_entry_info *entries = archive->entries;
    size_t kept = 0;

    if (archive->n_entries == 0)
        return;
    qsort(entries, archive->n_entries, sizeof(*entries), compare_entries);
    for (size_t i = 1; i < archive->n_entries; i++) {
        if (strcmp(entries[kept].path, entries[i].path) == 0 &&
            entries[kept].type == entries[i].type)
            skill_archive_entry_finish(&entries[i]);
        else
            entries[++kept] = entries[i];
    }
    archive->n_entries = kept + 1;
}

int layer_write(struct layer *layer, int tar_fd, char ret_digest[SHA256_HEX_SIZE],
                uint64_t *ret_bytes, struct err *err)
{
    struct ingest *in = &layer->in;
    struct err why = {0};
    int r;

    in->tar_fd = tar_fd;
    merge(&in->archive);
    r = ingest_arrange(in, &why);
    if (r < 0)
        return explain(r, &why, err);
    r = ingest_write(in, &why);
    if (r < 0)
        return explain(r, &why, err);
    memcpy(ret_digest, in->archive.digest, SHA256_HEX_SIZE);
    *ret_bytes = in->archive.tar_bytes;
    return 0;
}

static int add_package(struct image_manifest *manifest, const char *path, size_t len)
{
    char name[TAGS_NAME_MAX + 1], text[512];
    const char *hyphen = memchr(path, '-', len);

    if (!hyphen || tags_normalize(path, (size_t)(hyphen - path), name) < 0)
        return 0;
    (void)snprintf(text, sizeof(text), "%s %.*s", name, (int)(path + len - hyphen - 1),
                   hyphen + 1);
    return skill_strings_insert(&manifest->packages, text, IMAGE_MANIFEST_LINES_MAX);
}

/* A first name under which something can be imported. */
static int add_module(struct image_manifest *manifest, const char *path, size_t len)
{
    char name[NAMES_PATH_MAX + 1];

    if (len == 0 || len > NAMES_PATH_MAX || memchr(path, '-', len) || memchr(path, '.', len))
        return 0;
    memcpy(name, path, len);
    name[len] = '\0';
    return skill_strings_insert(&manifest->modules, name, IMAGE_MANIFEST_LINES_MAX);
}

static int look_at(void *user, const struct tar_header *header)
{
    static const char info[] = ".dist-info";
    struct image_manifest *manifest = user;
    const char *path = header->path, *slash = strchr(path, '/');
    size_t first = strcspn(path, "/");

    if (header->type != TAR_FILE)
        return 0;
    if (strncmp(path, "bin/", 4) == 0 && !strchr(path + 4, '/'))
        return skill_strings_insert(&manifest->programs, path + 4, IMAGE_MANIFEST_LINES_MAX);
    if (first > sizeof(info) - 1 &&
        strncmp(path + first - (sizeof(info) - 1), info, sizeof(info) - 1) == 0)
        return slash && strcmp(slash, "/METADATA") == 0
                   ? add_package(manifest, path, first - (sizeof(info) - 1))
                   : 0;
    if (!text_ends_with(path, ".py") && !text_ends_with(path, ".so"))
        return 0;
    return add_module(manifest, path, slash ? first : strcspn(path, "."));
}

int layer_look(int tar_fd, struct image_manifest *ret, struct err *err)
{
    struct image_manifest manifest = {.known = true};
    struct content_walk walk = {.each = look_at, .user = &manifest};
    int r = content_walk(tar_fd, &walk, err);

    if (r < 0) {
        image_manifest_finish(&manifest);
        return err_set_errno(err, -r, "cannot read the skill's packages");
    }
    *ret = manifest;
    return 0;
}
