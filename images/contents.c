/* SPDX-License-Identifier: Apache-2.0 */
#include "images/contents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"
#include "images/contents_internal.h"
#include "images/inside.h"

CLEANUP_WITH(FILE *, contents_close_text)

static void cleanup_closedir(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static bool is_word(const char *text)
{
    size_t n = 0;

    while (text[n] > ' ' && text[n] < 0x7f)
        n++;
    return n > 0 && n < 256 && text[n] == '\0';
}

void contents_put(struct contents_lines *lines, const char *kind, const char *name,
                  const char *more)
{
    if (!is_word(name) || (more && !is_word(more)))
        return;
    (void)fprintf(lines->out, "%s %s%s%s\n", kind, name, more ? " " : "", more ? more : "");
    lines->n++;
}

void contents_each(int root_fd, const char *folder,
                   void (*take)(void *ctx, int folder_fd, const char *name), void *ctx)
{
    _cleanup_fd_ int fd = inside_open(root_fd, folder, O_RDONLY | O_DIRECTORY);
    _cleanup_(closedir) DIR *dir = fd < 0 ? NULL : fd_opendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            take(ctx, fd, entry->d_name);
    }
}

/* One of the prefix, "3.", MINOR and nothing behind it: 0 where it is not. */
static unsigned minor_of(const char *name, const char *prefix)
{
    const char *minor = name + strlen(prefix);
    char *end;
    unsigned long n;

    if (strncmp(name, prefix, strlen(prefix)) != 0 || *minor < '0' || *minor > '9')
        return 0;
    n = strtoul(minor, &end, 10);
    return *end == '\0' && n < 1000 ? (unsigned)n : 0;
}

static void take_library(void *ctx, int folder_fd, const char *name)
{
    unsigned *minor = ctx, found = minor_of(name, "python3.");

    (void)folder_fd;
    *minor = found > *minor ? found : *minor;
}

void contents_prefix(const char *path, char ret[PATH_MAX])
{
    char *slash;

    (void)snprintf(ret, PATH_MAX, "%s", path);
    for (int i = 0; i < 2; i++) {
        slash = strrchr(ret, '/');
        *(slash ? slash : ret) = '\0';
    }
}

void contents_find_python(int root_fd, struct contents_python *ret)
{
    struct contents_python python = {0};
    _cleanup_fd_ int fd = inside_program(root_fd, "python3");
    char folder[PATH_MAX + 8];
    const char *slash, *name;

    *ret = python;
    if (fd < 0 || inside_where(root_fd, fd, python.path) < 0)
        return;
    slash = strrchr(python.path, '/');
    name = slash ? slash + 1 : python.path;
    python.minor = minor_of(name, "python3.");
    if (python.minor == 0) {
        python.minor = minor_of(name, "pypy3.");
        python.is_pypy = python.minor > 0;
    }
    contents_prefix(python.path, python.prefix);
    (void)snprintf(folder, sizeof(folder), "%s/lib", python.prefix);
    /* Not all are named for their version: the newest library beside it tells. */
    if (python.minor == 0)
        contents_each(root_fd, folder, take_library, &python.minor);
    if (python.minor > 0)
        *ret = python;
}

void contents_close_text(FILE *file)
{
    if (file)
        (void)fclose(file);
}

FILE *contents_open_text(int root_fd, const char *path)
{
    _cleanup_fd_ int fd = inside_open(root_fd, path, O_RDONLY | O_NONBLOCK);
    struct stat st;
    FILE *file;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    file = fdopen(fd, "r");
    if (file)
        (void)fd_steal(&fd);
    return file;
}

#define PROGRAM_MAX (32u << 20)

/* "3.MINOR.PATCH" as the interpreter's own words have it; else "3.MINOR". */
static void version_in(int root_fd, const struct contents_python *python, char *ret,
                       size_t size)
{
    _cleanup_fd_ int fd = inside_open(root_fd, python->path, O_RDONLY | O_NONBLOCK);
    struct stat st;
    const char *program, *at;
    size_t len;

    (void)snprintf(ret, size, "3.%u", python->minor);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > PROGRAM_MAX)
        return;
    len = (size_t)st.st_size;
    program = len > 0 ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (program == MAP_FAILED)
        return;
    for (at = program; (at = memmem(at, len - (size_t)(at - program), ret, strlen(ret)));
         at++) {
        char word[16] = "";
        unsigned minor, patch;

        memcpy(word, at, len - (size_t)(at - program) < 15 ? 0 : 15);
        if (sscanf(word, "3.%u.%u", &minor, &patch) == 2 && minor == python->minor &&
            word[strspn(word, "0123456789.")] == '\0' && patch < 1000) {
            (void)snprintf(ret, size, "3.%u.%u", minor, patch);
            break;
        }
    }
    (void)munmap((void *)(uintptr_t)program, len);
}

/* Whether it looks where a skill's own packages are, as by the link that python.yaml makes. */
static bool looks_for_packages(int root_fd, const struct contents_python *python)
{
    static const char packages[] = "/sandbox/packages";
    char path[64], target[sizeof(packages)] = "";

    (void)snprintf(path, sizeof(path), "usr/local/lib/python3.%u/dist-packages", python->minor);
    _cleanup_fd_ int fd = inside_open(root_fd, path, O_PATH | O_NOFOLLOW);

    return fd >= 0 && readlinkat(fd, "", target, sizeof(target)) == sizeof(packages) - 1 &&
           strcmp(target, packages) == 0;
}

static void put_language(struct contents_lines *lines, int root_fd,
                         const struct contents_python *python)
{
    char version[32];

    version_in(root_fd, python, version, sizeof(version));
    contents_put(lines, "language", "python", version);
    if (python->is_pypy)
        contents_put(lines, "pypy", version, NULL);
    if (!looks_for_packages(root_fd, python))
        contents_put(lines, "alone", "python", NULL);
}

struct programs {
    struct contents_lines *lines;
    int root_fd;
    const char *folder;
};

static void take_program(void *ctx, int folder_fd, const char *name)
{
    const struct programs *programs = ctx;
    char path[PATH_MAX];
    struct stat st;

    (void)folder_fd;
    (void)snprintf(path, sizeof(path), "%s/%s", programs->folder, name);
    _cleanup_fd_ int fd = inside_open(programs->root_fd, path, O_PATH);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
        contents_put(programs->lines, "program", name, NULL);
}

/* As guest-init/main.c looks for them. */
void contents_put_warm(struct contents_lines *lines, int root_fd, const char *name,
                       const char *zygote)
{
    _cleanup_fd_ int fd = inside_open(root_fd, zygote, O_PATH | O_DIRECTORY);

    if (fd >= 0)
        contents_put(lines, "warm", name, NULL);
}

int contents_print(int root_fd, FILE *packages, FILE *out, struct err *err)
{
    struct contents_lines lines = {.out = out, .packages = packages};
    struct contents_python python;

    for (size_t i = 0; i < INSIDE_N_FOLDERS; i++) {
        struct programs programs = {&lines, root_fd, inside_folders[i]};

        contents_each(root_fd, inside_folders[i], take_program, &programs);
    }
    contents_find_python(root_fd, &python);
    if (python.minor > 0) {
        put_language(&lines, root_fd, &python);
        contents_put_python(&lines, root_fd, &python);
    }
    if (python.minor > 0)
        contents_put_warm(&lines, root_fd, "python", "usr/lib/skillvm/zygote");
    contents_put_node(&lines, root_fd);
    if (lines.n > CONTENTS_LINES_MAX)
        return err_set(err, E2BIG, "the image has more than %u programs and modules",
                       CONTENTS_LINES_MAX);
    return ferror(out) ? err_set(err, EIO, "cannot write what the image holds") : 0;
}

/* A package of dpkg's list, as it is read. */
struct entry {
    char name[128], version[128], architecture[32];
    bool installed;
};

static void take_field(struct entry *entry, const char *line)
{
    if (sscanf(line, "Package: %127s", entry->name) == 1 ||
        sscanf(line, "Version: %127s", entry->version) == 1 ||
        sscanf(line, "Architecture: %31s", entry->architecture) == 1)
        return;
    if (strncmp(line, "Status: ", 8) == 0)
        entry->installed = strstr(line, " installed") != NULL;
}

/* The next package; a list of one package a file (distroless) says nothing of a status. */
static bool next_entry(FILE *list, bool installed, struct entry *ret)
{
    struct entry entry = {.installed = installed};
    char line[1024];

    while (fgets(line, sizeof(line), list) && (line[0] != '\n' || !entry.name[0]))
        take_field(&entry, line);
    *ret = entry;
    return entry.name[0];
}

struct debian {
    int root_fd;
    FILE *out;
};

static void print_package(FILE *out, const struct entry *entry)
{
    if (!is_word(entry->name) || !is_word(entry->version) || !is_word(entry->architecture))
        return;
    (void)fprintf(out, "%s_", entry->name);
    for (const char *c = entry->version; *c; c++)
        (void)fprintf(out, *c == ':' ? "%%3a" : "%c", *c);
    (void)fprintf(out, "_%s.deb\n", entry->architecture);
}

static void print_list(const struct debian *debian, const char *path, bool installed)
{
    _cleanup_(contents_close_text) FILE *list = contents_open_text(debian->root_fd, path);
    struct entry entry;

    while (list && next_entry(list, installed, &entry)) {
        if (entry.installed)
            print_package(debian->out, &entry);
    }
}

#define DPKG "var/lib/dpkg/status"

static void print_part(void *ctx, int folder_fd, const char *name)
{
    char path[PATH_MAX];

    (void)folder_fd;
    if (text_ends_with(name, ".md5sums"))
        return;
    (void)snprintf(path, sizeof(path), DPKG ".d/%s", name);
    print_list(ctx, path, true);
}

int contents_print_debian(int root_fd, FILE *out, struct err *err)
{
    struct debian debian = {root_fd, out};

    print_list(&debian, DPKG, false);
    contents_each(root_fd, DPKG ".d", print_part, &debian);
    return ferror(out) ? err_set(err, EIO, "cannot write the list of packages") : 0;
}

#define EPOCH_END "%3a" /* a colon in a file's name */

bool contents_package_version(FILE *packages, const char *package, char *ret, size_t size)
{
    const size_t n = strlen(package);
    char line[512];

    rewind(packages);
    while (fgets(line, sizeof(line), packages)) {
        char *version = line + n + 1, *epoch;

        if (strncmp(line, package, n) != 0 || line[n] != '_')
            continue;
        version[strcspn(version, "_\n")] = '\0';
        epoch = strstr(version, EPOCH_END);
        (void)snprintf(ret, size, "%s", epoch ? epoch + strlen(EPOCH_END) : version);
        return true;
    }
    return false;
}

bool contents_fits(int root_fd, FILE *packages, const char *version)
{
    char package[128] = "", installed[128] = "", path[PATH_MAX];
    struct contents_python python;
    size_t n = strlen(version);

    contents_find_python(root_fd, &python);
    (void)snprintf(package, sizeof(package), "python3.%u-minimal", python.minor);
    (void)snprintf(path, sizeof(path), "usr/bin/python3.%u", python.minor);
    return strcmp(python.path, path) == 0 &&
           contents_package_version(packages, package, installed, sizeof(installed)) &&
           strncmp(installed, version, n) == 0 && installed[n] == '-';
}
