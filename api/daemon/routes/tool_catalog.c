/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/tool_catalog.h"

#include "api/daemon/callers/held.h"
#include "api/daemon/engine/prober.h"
#include "api/daemon/registry/registry_tools.h"
#include "api/daemon/routes/chooser.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/entry.h"
#include "api/tools/run_code.h"
#include "api/tools/schema.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list that takes no more is held without being counted, as a small answer is. */
#define UNCOUNTED_BYTES (256u * 1024u)

static bool copy(char **ret, const char *text)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text;
}

void tool_finish(struct tool *tool)
{
    free(tool->skill);
    free(tool->version);
    free(tool->digest);
    free(tool->packages);
    free(tool->packages_list);
    free(tool->script);
    free(tool->path);
    free(tool->summary);
    free(tool->schema);
    free(tool->image);
    parser_script_finish(&tool->about);
    *tool = (struct tool){0};
}

void tool_catalog_finish(struct tool_catalog *tools)
{
    for (size_t i = 0; i < tools->n; i++)
        tool_finish(&tools->items[i]);
    free(tools->items);
    if (tools->held)
        held_remove(tools->held, tools->tenant, HTTP_HELD_ANSWER, tools->held_bytes);
    *tools = (struct tool_catalog){0};
}

int tool_catalog_hold(struct tool_catalog *tools, uint64_t bytes, struct err *err)
{
    uint64_t before;
    int r;

    tools->bytes += bytes;
    if (!tools->held || tools->bytes <= UNCOUNTED_BYTES || tools->bytes <= tools->held_bytes)
        return 0;
    bytes = tools->bytes - tools->held_bytes;
    r = tools->bytes > LIMIT_ANSWERS_BYTES
            ? -E2BIG
            : held_add(tools->held, tools->tenant, HTTP_HELD_ANSWER, bytes, LIMIT_ANSWERS_BYTES,
                       &before);
    if (r == -E2BIG)
        return err_set(err, E2BIG, "the tools of this tenant take more than %llu MiB together",
                       LIMIT_ANSWERS_BYTES / LIMIT_MIB);
    if (r == -EDQUOT)
        return err_set(
            err, EBUSY,
            "lists of tools that are made, and answers that were not read yet, are as "
            "large as they may be together: read them, then ask again");
    if (r < 0)
        return err_no_memory(err);
    tools->held_bytes += bytes;
    return 0;
}

static uint64_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static uint64_t tool_bytes(const struct tool *tool)
{
    return sizeof(*tool) + text_bytes(tool->skill) + text_bytes(tool->version) +
           text_bytes(tool->digest) + text_bytes(tool->packages) +
           text_bytes(tool->packages_list) + text_bytes(tool->script) + text_bytes(tool->path) +
           text_bytes(tool->summary) + text_bytes(tool->schema) + text_bytes(tool->image);
}

void tool_catalog_forget(struct tool_catalog *tools, struct tool *tool)
{
    tools->bytes -= tool_bytes(tool) - sizeof(*tool);
    tool_finish(tool);
}

/* The tool that runs code. 0 or -ENOMEM; the caller finishes *ret. */
static int make_run_code(struct tool *ret)
{
    *ret = (struct tool){.name = RUN_CODE_NAME, .is_code = true};
    return copy(&ret->summary, run_code_description) && copy(&ret->schema, run_code_schema)
               ? 0
               : -ENOMEM;
}

/* Adds an empty tool. NULL without memory. */
static struct tool *append(struct tool_catalog *tools)
{
    struct tool *items = reallocarray(tools->items, tools->n + 1, sizeof(*items));

    if (!items)
        return NULL;
    tools->items = items;
    items[tools->n] = (struct tool){0};
    return &items[tools->n++];
}

/* Adds a tool; script is NULL for the entry of the skill. */
static int add(struct tool_catalog *tools, const struct registry_skill *row,
               const struct skill *skill, const struct skill_entry *entry, const char *script,
               struct err *err)
{
    struct tool *tool;

    if (tools->n == LIMIT_TOOLS)
        return 0;
    tool = append(tools);
    if (!tool)
        return err_no_memory(err);
    *tool = (struct tool){.mode = entry->mode,
                          .is_python = strcmp(entry->lang, "python") == 0,
                          .packages_python = row->packages_python};
    return copy(&tool->skill, row->name) && copy(&tool->version, row->version) &&
                   copy(&tool->digest, row->digest) &&
                   copy(&tool->packages, row->packages_digest ? row->packages_digest : "") &&
                   copy(&tool->packages_list, row->packages) && copy(&tool->script, script) &&
                   copy(&tool->path, entry->entry) && copy(&tool->summary, row->description) &&
                   copy(&tool->schema, script ? NULL : skill->input_schema) &&
                   copy(&tool->image, skill->image)
               ? tool_catalog_hold(tools, tool_bytes(tool), err)
               : err_no_memory(err);
}

/* A script of the skill's, or of a part of it that has a folder of scripts of its own. */
static bool is_script(const struct archive_entry_info *entry, const char **ret_lang)
{
    struct archive_entry_info part = *entry; /* borrows its path */
    char *at;

    while ((at = strstr(part.path, "/scripts/")))
        part.path = at + 1;
    return skill_entry_is_script(&part, ret_lang);
}

/* Adds the entry of a skill, or each of its scripts where it has none. */
static int add_scripts(struct tool_catalog *tools, const struct registry_skill *row,
                       const struct skill *skill, const struct skill_archive *archive,
                       struct err *err)
{
    _cleanup_skill_entry_ struct skill_entry own = {0};
    struct err ignored = {0};
    int r = skill_entry_resolve(skill, archive, NULL, NULL, &own, &ignored);
    unsigned n = 0;

    if (r == 0)
        return add(tools, row, skill, &own, NULL, err);
    if (r == -ENOMEM)
        return err_no_memory(err);
    for (size_t i = 0; i < archive->n_entries && n < LIMIT_TOOL_SCRIPTS; i++) {
        char *path = archive->entries[i].path;
        struct skill_entry entry = {.mode = PROTO_MODE_SCRIPT, .entry = path};

        if (!is_script(&archive->entries[i], &entry.lang))
            continue;
        n++;
        r = add(tools, row, skill, &entry, path, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The tools of one skill, of which this is the archive. One that is damaged has none. */
static int add_skill(int fd, const struct registry_skill *row, struct tool_catalog *tools,
                     struct err *err)
{
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    struct err ignored = {0};
    int r = skill_archive_reload(fd, row->digest, &archive, &skill, &ignored);

    if (r < 0)
        return r == -ENOMEM ? err_no_memory(err) : 0;
    return add_scripts(tools, row, &skill, &archive, err);
}

static int assign_names(struct tool_catalog *tools)
{
    _cleanup_free_ struct tool_identity *identities = calloc(tools->n + 1, sizeof(*identities));
    _cleanup_free_ char(*names)[TOOL_NAME_SIZE] = calloc(tools->n + 1, TOOL_NAME_SIZE);
    int r;

    if (!identities || !names)
        return -ENOMEM;
    /* The first one has its name. */
    for (size_t i = 1; i < tools->n; i++)
        identities[i] = (struct tool_identity){tools->items[i].skill, tools->items[i].script};
    r = tool_names_assign(identities + 1, tools->n - 1, names + 1);
    for (size_t i = 1; r == 0 && i < tools->n; i++)
        memcpy(tools->items[i].name, names[i], TOOL_NAME_SIZE);
    return r;
}

/* A list on its way. */
struct listing {
    struct daemon *d;
    const char *tenant;
    struct turn turn; /* while archives are read, but not while one is waited for */
    struct tool_catalog *tools;
    char name[LIMIT_NAME_BYTES + 1]; /* of the last skill */
    unsigned n;                      /* skills so far */
    bool is_cut_off;                 /* those that are not here cannot be read now */
    struct err err;                  /* why it ends: no turn, or no room */
};

/*
 * Opens an archive; one that is not here comes from the servers of a cluster, during which
 * others have the turn. The descriptor; -EBUSY where there is none again; as of objects_get.
 */
static int open_archive(struct listing *l, const char *digest, struct err *err)
{
    _cleanup_fd_ int fd = objects_get_here(l->d->objects, digest, err);
    int r;

    if (fd != -ENOENT || l->is_cut_off)
        return fd_steal(&fd);
    *err = (struct err){0};
    turn_end(&l->turn);
    fd = objects_get(l->d->objects, digest, err);
    l->is_cut_off |= fd == -EAGAIN;
    l->turn = (struct turn){0};
    r = turn_take(&l->turn, l->d, TURN_ARCHIVE, l->tenant, &l->err);
    return r < 0 ? r : fd_steal(&fd);
}

/* Rows come by name, the one registered last first. */
static int add_latest(void *ctx, const struct registry_skill *row)
{
    struct listing *l = ctx;
    struct err ignored = {0};
    _cleanup_fd_ int fd = -1;

    if (strcmp(l->name, row->name) == 0 || l->n == LIMIT_TOOLS)
        return 0;
    (void)snprintf(l->name, sizeof(l->name), "%s", row->name);
    l->n++;
    fd = open_archive(l, row->digest, &ignored);
    if (l->err.code)
        return fd;
    /* One that was deleted meanwhile, or cannot be read, has none. */
    return fd < 0 ? 0 : add_skill(fd, row, l->tools, &l->err);
}

static int add_all(struct listing *l, struct err *err)
{
    struct tool *code = append(l->tools);
    int r = code ? make_run_code(code) : -ENOMEM;

    if (r < 0)
        return r;
    r = registry_skill_each(l->d->registry, l->tenant, add_latest, l, err);
    return r < 0 ? r : assign_names(l->tools);
}

/* All archives of a tenant are read. */
static int load(struct listing *l, struct err *err)
{
    int r = turn_take(&l->turn, l->d, TURN_ARCHIVE, l->tenant, err);

    if (r < 0)
        return r;
    r = add_all(l, err);
    if (l->err.code)
        *err = l->err;
    else if (r < 0 && r != -EIO)
        r = err_no_memory(err);
    turn_end(&l->turn);
    return r;
}

int tool_catalog_load(struct daemon *d, const char *tenant, struct tool_catalog *ret,
                      struct err *err)
{
    _cleanup_tool_catalog_ struct tool_catalog tools = {0};
    struct listing listing = {.d = d, .tenant = tenant, .tools = &tools};
    int r;

    tools.held = d->held;
    (void)snprintf(tools.tenant, sizeof(tools.tenant), "%s", tenant);
    r = load(&listing, err);
    if (r < 0)
        return r;
    *ret = tools;
    tools = (struct tool_catalog){0};
    return 0;
}

/* A skill with an entry whose own name is asked for: names are made so that it has it. */
static int find_plain(struct daemon *d, const char *tenant, const char *name, struct tool *ret,
                      struct err *err)
{
    _cleanup_tool_catalog_ struct tool_catalog tools = {0};
    _cleanup_registry_skill_ struct registry_skill row = {0};
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_fd_ int fd = -1;
    char clean[TOOL_NAME_SIZE];
    bool known;
    int r = registry_skill_get(d->registry, tenant, name, NULL, &row, &known, err);

    if (r < 0)
        return r;
    fd = objects_get(d->objects, row.digest, err);
    if (fd < 0)
        return fd;
    r = turn_take_at(&turn, d, fd, tenant, err);
    if (r < 0)
        return r;
    r = add_skill(fd, &row, &tools, err);
    if (r == 0 && (tools.n != 1 || tools.items[0].script))
        r = -ENOENT;
    if (r == 0) {
        *ret = tools.items[0];
        memcpy(ret->name, tool_name_clean(name, "_-", clean, sizeof(clean)), sizeof(ret->name));
        tools.items[0] = (struct tool){0};
    }
    return r;
}

int tool_catalog_find(struct daemon *d, const char *tenant, const char *name, struct tool *ret,
                      struct err *err)
{
    _cleanup_tool_catalog_ struct tool_catalog tools = {0};
    char clean[TOOL_NAME_SIZE];
    struct err ignored = {0};
    int r;

    if (strlen(name) >= TOOL_NAME_SIZE || !name[0] ||
        strcmp(tool_name_clean(name, "_-", clean, sizeof(clean)), name) != 0)
        return err_set(err, ENOENT, "there is no tool named %.64s", name);
    if (strcmp(name, RUN_CODE_NAME) == 0)
        return make_run_code(ret) < 0 ? err_no_memory(err) : 0;
    r = find_plain(d, tenant, name, ret, &ignored);
    if (r != -ENOENT)
        return r < 0 ? err_set(err, -r, "%s", ignored.message) : 0;
    r = tool_catalog_load(d, tenant, &tools, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < tools.n; i++) {
        if (strcmp(tools.items[i].name, name) != 0)
            continue;
        *ret = tools.items[i];
        tools.items[i] = (struct tool){0};
        return 0;
    }
    return err_set(err, ENOENT, "there is no tool named %s", name);
}

uint64_t tool_catalog_deadline_ns(const struct daemon *d)
{
    return clock_monotonic_ns() + prober_timeout_ms(d->prober) * 1000000u;
}

/* What the registry has: 0 with it read to *ret (NULL: not), -ENOENT when nobody looked yet. */
static int take_known(struct daemon *d, const char *tenant, const struct registry_tool *key,
                      struct parser_script *ret, struct err *err)
{
    struct err ignored = {0};
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_free_ char *text = NULL;
    int r = registry_tool_schema_get(d->registry, key, &text, err);

    if (r < 0 || !text || !ret)
        return r;
    r = turn_take(&turn, d, TURN_LOOK, tenant, err);
    if (r < 0)
        return r;
    /* One that an older skillvm took and this one does not is the same as none. */
    return parser_read(text, strlen(text), ret, &ignored) == -ENOMEM ? err_no_memory(err) : 0;
}

/*
 * Whether a look at its script may find something: 1; 0 where that cannot be read now, or where
 * it cannot, which is remembered; -EBUSY; -ENOMEM.
 */
static int promises(struct daemon *d, const char *tenant, const struct tool *tool,
                    const struct registry_tool *key, bool is_hasty, struct err *err)
{
    struct err ignored = {0};
    _cleanup_turn_ struct turn turn = {.is_hasty = is_hasty};
    _cleanup_fd_ int fd = objects_get(d->objects, tool->digest, &ignored);
    bool promising = false;
    int r = fd < 0 ? 0 : turn_take_at(&turn, d, fd, tenant, err);

    if (fd < 0 || r < 0 || tool_probe_promises(fd, tool->path, &promising, &ignored) < 0)
        return r;
    if (!promising)
        (void)registry_tool_schema_put(d->registry, key, NULL, &ignored);
    return promising;
}

int tool_catalog_describe(struct daemon *d, const char *tenant, struct tool *tool,
                          uint64_t deadline_ns, struct err *err)
{
    char image[IMAGE_NAME_SIZE], images[SHA256_HEX_SIZE];
    const struct tool_script script = {
        .digest = tool->digest, .path = tool->path, .mode = tool->mode, .image = image};
    const struct registry_tool key = {.skill = tool->digest,
                                      .packages = tool->packages,
                                      .images = images,
                                      .script = tool->script ? tool->script : ""};
    _cleanup_images_ struct images *now = NULL;
    struct image_choice choice;
    int r;

    tool->is_pending = false;
    if (tool->schema || !tool->is_python)
        return 0;
    now = image_tables_now(d->images);
    r = chooser_images(d, now, tenant, images, err);
    if (r < 0)
        return r;
    r = take_known(d, tenant, &key, deadline_ns > 0 ? &tool->about : NULL, err);
    if (r != -ENOENT)
        return r;
    r = promises(d, tenant, tool, &key, deadline_ns == 0, err);
    if (r <= 0)
        return r;
    r = chooser_find(d, now, tenant, tool->digest,
                     &(struct chooser_packages){tool->packages, -1, tool->packages_list,
                                                (unsigned)tool->packages_python},
                     "python", tool->image, &choice, err);
    /* Where it would not run, nobody looks. */
    if (r < 0)
        return r == -EACCES ? 0 : r;
    images_write(now, choice.place, image);
    r = prober_ask(d->prober, tenant, &script, &key);
    if (r < 0)
        return r == -ENODATA ? 0 : r;
    tool->is_pending = true;
    if (deadline_ns == 0)
        return -EAGAIN;
    prober_wait(d->prober, &key, deadline_ns);
    r = take_known(d, tenant, &key, &tool->about, err);
    if (r != -ENOENT)
        return r;
    return prober_ask(d->prober, tenant, &script, &key) == -ENODATA ? 0 : -EAGAIN;
}

bool tool_takes_argv(const struct tool *tool)
{
    return !tool->schema && tool->about.has_parser && tool->about.parser.n_actions > 0;
}

bool tool_takes_files(const struct tool *tool)
{
    return tool->schema ? schema_has_room(tool->schema, "files")
                        : !tool_takes_argv(tool) || !parser_takes(&tool->about.parser, "files");
}

void tool_catalog_prepare(struct daemon *d, const char *tenant,
                          const struct registry_skill *row, const struct skill *skill,
                          const struct skill_archive *archive)
{
    _cleanup_tool_catalog_ struct tool_catalog tools = {0};
    struct err ignored = {0};

    /* What fails here is tried again when somebody asks for it. */
    (void)add_scripts(&tools, row, skill, archive, &ignored);
    for (size_t i = 0; i < tools.n; i++)
        (void)tool_catalog_describe(d, tenant, &tools.items[i], 0, &ignored);
}
