/* SPDX-License-Identifier: Apache-2.0 */
/* The image's Node: which it is, and the modules that came with packages. */
#include "images/contents_internal.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"
#include "images/inside.h"

CLEANUP_WITH(FILE *, contents_close_text)
CLEANUP_WITH(cJSON *, cJSON_Delete)

#define PACKAGE_JSON_MAX 65536u
#define VERSION_MAX      48u /* as long as the daemon compares */

/* Of the header's lines, which define a part of the version each. */
static bool read_header(FILE *file, char *ret, size_t size)
{
    static const char *const names[] = {"MAJOR", "MINOR", "PATCH"};
    unsigned parts[3] = {0}, n = 0, value;
    char line[256], name[16];

    for (int i = 0; i < 200 && n < 3 && fgets(line, sizeof(line), file); i++)
        if (sscanf(line, "#define NODE_%15[A-Z]_VERSION %u", name, &value) == 2 &&
            strcmp(name, names[n]) == 0 && value < 1000)
            parts[n++] = value;
    (void)snprintf(ret, size, "%u.%u.%u", parts[0], parts[1], parts[2]);
    return n == 3;
}

/*
 * The header that Node's own archives have beside it says which it is; that of Debian's package
 * is in another one, and the package's version says the same.
 */
static bool find_version(int root_fd, const char *program, FILE *packages, char *ret,
                         size_t size)
{
    _cleanup_(contents_close_text) FILE *header = NULL;
    char prefix[PATH_MAX], path[PATH_MAX + 32];

    contents_prefix(program, prefix);
    (void)snprintf(path, sizeof(path), "%s/include/node/node_version.h", prefix);
    header = contents_open_text(root_fd, path);
    if (header && read_header(header, ret, size))
        return true;
    if (strcmp(prefix, "usr") != 0 || !contents_package_version(packages, "nodejs", ret, size))
        return false;
    ret[strspn(ret, "0123456789.")] = '\0';
    return true;
}

static bool put_version(struct contents_lines *lines, int root_fd)
{
    _cleanup_fd_ int fd = inside_program(root_fd, "node");
    char path[PATH_MAX], version[128];

    if (fd < 0)
        return false;
    if (inside_where(root_fd, fd, path) == 0 &&
        find_version(root_fd, path, lines->packages, version, sizeof(version)))
        contents_put(lines, "language", "node", version);
    return true;
}

struct modules {
    struct contents_lines *lines;
    int root_fd;
    const char *folder;
    const char *scope; /* "", or "@SCOPE/" */
};

static bool is_there(int root_fd, const char *path, mode_t kind)
{
    _cleanup_fd_ int fd = inside_open(root_fd, path, O_PATH);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* What a package.json says of its version; false where it says none that can be one. */
static bool module_version(int root_fd, const char *path, char ret[VERSION_MAX])
{
    _cleanup_(contents_close_text) FILE *file = contents_open_text(root_fd, path);
    _cleanup_free_ char *text = file ? malloc(PACKAGE_JSON_MAX) : NULL;
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const char *version;

    if (text)
        json = cJSON_ParseWithLength(text, fread(text, 1, PACKAGE_JSON_MAX, file));
    version = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "version"));
    if (!version || version[0] < '0' || version[0] > '9' || strlen(version) >= VERSION_MAX)
        return false;
    for (const char *c = version; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            return false;
    (void)strcpy(ret, version);
    return true;
}

/* One is a folder that says what it is, or a file. */
static void take_module(void *ctx, int folder_fd, const char *file)
{
    const struct modules *m = ctx;
    char name[2 * NAME_MAX + 2], path[PATH_MAX], version[VERSION_MAX];

    (void)folder_fd;
    (void)snprintf(name, sizeof(name), "%s%s", m->scope, file);
    (void)snprintf(path, sizeof(path), "%s/%s/package.json", m->folder, name);
    if (is_there(m->root_fd, path, S_IFREG)) {
        contents_put(m->lines, "node", name,
                     module_version(m->root_fd, path, version) ? version : NULL);
    } else if (text_ends_with(file, ".js") && !*m->scope) {
        name[strlen(file) - strlen(".js")] = '\0';
        contents_put(m->lines, "node", name, NULL);
    }
}

static void take_scope(void *ctx, int folder_fd, const char *file)
{
    struct modules m = *(const struct modules *)ctx;
    char scope[NAME_MAX + 2], path[PATH_MAX];

    (void)folder_fd;
    if (file[0] != '@')
        return;
    (void)snprintf(scope, sizeof(scope), "%s/", file);
    (void)snprintf(path, sizeof(path), "%s/%s", m.folder, file);
    m.scope = scope;
    contents_each(m.root_fd, path, take_module, &m);
}

void contents_put_node(struct contents_lines *lines, int root_fd)
{
    /* Debian's, and what `npm install --global` fills. */
    static const char *const folders[] = {"usr/share/nodejs", "usr/lib/x86_64-linux-gnu/nodejs",
                                          "usr/lib/node_modules", "usr/local/lib/node_modules"};
    const size_t n = sizeof(folders) / sizeof(folders[0]);

    if (!put_version(lines, root_fd))
        return;
    contents_put_warm(lines, root_fd, "node", "usr/lib/skillvm/zygote-node");
    for (size_t i = 0; i < n; i++) {
        struct modules modules = {lines, root_fd, folders[i], ""};

        contents_each(root_fd, folders[i], take_module, &modules);
        contents_each(root_fd, folders[i], take_scope, &modules);
    }
}
