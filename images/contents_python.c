/* SPDX-License-Identifier: Apache-2.0 */
/* What Python's import finds, by the rules of its pkgutil.iter_modules and importlib.metadata.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dotted.h"
#include "base/fd.h"
#include "base/package_name.h"
#include "base/text.h"
#include "images/contents_internal.h"
#include "images/inside.h"

#define NAMES_MAX    16384u
#define METADATA_MAX 65536u

/* Modules that are compiled into the interpreter, or frozen: no file tells of them. */
static const char *const built_in[] = {"_abc",
                                       "_ast",
                                       "_bisect",
                                       "_blake2",
                                       "_codecs",
                                       "_collections",
                                       "_csv",
                                       "_datetime",
                                       "_elementtree",
                                       "_frozen_importlib",
                                       "_frozen_importlib_external",
                                       "_functools",
                                       "_heapq",
                                       "_imp",
                                       "_io",
                                       "_locale",
                                       "_md5",
                                       "_opcode",
                                       "_operator",
                                       "_pickle",
                                       "_posixsubprocess",
                                       "_random",
                                       "_sha1",
                                       "_sha256",
                                       "_sha3",
                                       "_sha512",
                                       "_signal",
                                       "_socket",
                                       "_sre",
                                       "_stat",
                                       "_statistics",
                                       "_string",
                                       "_struct",
                                       "_symtable",
                                       "_thread",
                                       "_tokenize",
                                       "_tracemalloc",
                                       "_typing",
                                       "_warnings",
                                       "_weakref",
                                       "array",
                                       "atexit",
                                       "binascii",
                                       "builtins",
                                       "cmath",
                                       "errno",
                                       "faulthandler",
                                       "fcntl",
                                       "gc",
                                       "grp",
                                       "itertools",
                                       "marshal",
                                       "math",
                                       "posix",
                                       "pwd",
                                       "pyexpat",
                                       "select",
                                       "spwd",
                                       "sys",
                                       "syslog",
                                       "time",
                                       "unicodedata",
                                       "xxsubtype",
                                       "zlib"};

/* Of these, what PyPy has not, or in a file. */
static const char *const only_cpython[] = {
    "_bisect",      "_datetime", "_elementtree", "_functools", "_heapq",
    "_pickle",      "_stat",     "_statistics",  "_symtable",  "_tokenize",
    "_tracemalloc", "_typing",   "spwd",         "xxsubtype"};

struct names {
    struct contents_lines *lines;
    const char *kind;
    const struct contents_python *python;
    const struct names *less; /* names in it are not told again, or NULL */
    char **list;
    size_t n;
};

static bool has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static void add(struct names *names, const char *name)
{
    char **list;
    char *copy;

    if (!dotted_is_name(name, strlen(name)) || (names->less && has(names->less, name)))
        return;
    contents_put(names->lines, names->kind, name, NULL);
    if (names->less || names->n == NAMES_MAX)
        return;
    list = reallocarray(names->list, names->n + 1, sizeof(*list));
    copy = list ? strdup(name) : NULL;
    names->list = list ? list : names->list;
    if (copy)
        names->list[names->n++] = copy;
}

static void names_finish(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
}

/* Whether what follows a module's name in that of its file is one that import looks for. */
static bool is_suffix(const char *suffix, const struct contents_python *python)
{
    char tag[32];

    (void)snprintf(tag, sizeof(tag), python->is_pypy ? ".pypy3%u-" : ".cpython-3%u-",
                   python->minor);
    return strcmp(suffix, ".py") == 0 || strcmp(suffix, ".pyc") == 0 ||
           (!python->is_pypy &&
            (strcmp(suffix, ".so") == 0 || strcmp(suffix, ".abi3.so") == 0)) ||
           (strncmp(suffix, tag, strlen(tag)) == 0 && text_ends_with(suffix, ".so"));
}

static bool is_package(int folder_fd, const char *name)
{
    static const char *const inits[] = {"__init__.py", "__init__.pyc"};
    char path[PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%.255s/%s", name, inits[i]);
        if (faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

/* What lies beside modules and is none, and those of Python's own tests. */
static bool nobody_imports(const char *name)
{
    static const char *const whole[] = {"__init__",   "sitecustomize", "__hello__",
                                        "__phello__", "test",          "_ctypes_test"};
    static const char *const beginnings[] = {"_sysconfigdata", "_test", "_xx", "xxlimited",
                                             "_distutils_system"};

    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void take_module(void *ctx, int folder_fd, const char *file)
{
    struct names *names = ctx;
    size_t n = strcspn(file, ".");
    char name[256];

    (void)snprintf(name, sizeof(name), "%.*s", (int)n, file);
    if (nobody_imports(name))
        return;
    if (!(file[n] ? is_suffix(file + n, names->python) : is_package(folder_fd, file)))
        return;
    add(names, name);
    /* LibreOffice's makes com.sun.star importable, of which there is no file. */
    if (strcmp(name, "uno") == 0)
        add(names, "com");
}

/* The value of a field of a distribution's metadata, without the line's end, in its place. */
static const char *field(char *line, const char *key)
{
    size_t n = strlen(key);
    char *value = line + n;

    if (strncasecmp(line, key, n) != 0)
        return NULL;
    value += strspn(value, " \t");
    value[strcspn(value, " \t\r\n")] = '\0';
    return value;
}

/* What was built without being told its version says this; the package that it is in knows. */
static void correct_version(FILE *packages, const char *name, char *version, size_t size)
{
    char package[256 + sizeof("python3-")], debian[128];
    size_t n;

    (void)snprintf(package, sizeof(package), "python3-%s", name);
    if (strcmp(version, "0.0.0") != 0 ||
        !contents_package_version(packages, package, debian, sizeof(debian)))
        return;
    n = strspn(debian, "0123456789.");
    /* What is behind "~" comes before the version that stands there. */
    if (n > 0 && debian[n] != '~')
        (void)snprintf(version, size, "%.*s", (int)n, debian);
}

static void read_metadata(struct contents_lines *lines, char *text)
{
    char name[256] = "", version[256] = "";

    for (char *line = text, *next; line && *line && *line != '\n'; line = next) {
        const char *value;

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if ((value = field(line, "Name:")) && !name[0])
            (void)package_name_clean(value, strlen(value), name, sizeof(name));
        else if ((value = field(line, "Version:")) && !version[0])
            (void)snprintf(version, sizeof(version), "%.255s", value);
    }
    correct_version(lines->packages, name, version, sizeof(version));
    if (name[0] && version[0])
        contents_put(lines, "package", name, version);
}

static void take_distribution(void *ctx, int folder_fd, const char *name)
{
    _cleanup_free_ char *text = NULL;
    const char *file = text_ends_with(name, ".dist-info")  ? "/METADATA"
                       : text_ends_with(name, ".egg-info") ? "/PKG-INFO"
                                                           : NULL;
    char path[PATH_MAX];
    struct stat st;
    ssize_t n;

    if (!file)
        return;
    (void)snprintf(path, sizeof(path), "%.255s%s", name, file);
    /* An egg-info may also be the file itself. */
    if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        (void)snprintf(path, sizeof(path), "%.255s", name);
    _cleanup_fd_ int fd = inside_open(folder_fd, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    text = malloc(METADATA_MAX);
    n = text ? fd_read_full(fd, text, METADATA_MAX - 1) : -1;
    if (n < 0)
        return;
    text[n] = '\0';
    read_metadata(ctx, text);
}

static const char *name_of(const struct contents_python *python)
{
    return python->is_pypy ? "pypy" : "python";
}

static void take_library(struct names *standard, int root_fd,
                         const struct contents_python *python)
{
    for (int i = 0; i < 2; i++) {
        char folder[PATH_MAX + 64];
        size_t n = (size_t)snprintf(folder, sizeof(folder), "%s/%s/%s3.%u", python->prefix,
                                    i ? "lib64" : "lib", name_of(python), python->minor);

        contents_each(root_fd, folder, take_module, standard);
        (void)snprintf(folder + n, sizeof(folder) - n, "/lib-dynload");
        contents_each(root_fd, folder, take_module, standard);
    }
}

static void take_packages(struct names *modules, int root_fd, const char *folder)
{
    contents_each(root_fd, folder, take_module, modules);
    contents_each(root_fd, folder, take_distribution, modules->lines);
}

static void take_built_in(struct names *standard)
{
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        bool absent = false;

        for (size_t j = 0; j < sizeof(only_cpython) / sizeof(only_cpython[0]); j++)
            absent |= standard->python->is_pypy && strcmp(built_in[i], only_cpython[j]) == 0;
        if (!absent && !has(standard, built_in[i]))
            add(standard, built_in[i]);
    }
}

void contents_put_python(struct contents_lines *lines, int root_fd,
                         const struct contents_python *python)
{
    struct names standard = {.lines = lines, .kind = "standard", .python = python};
    struct names modules = {
        .lines = lines, .kind = "module", .python = python, .less = &standard};
    char folder[PATH_MAX + 64];

    take_library(&standard, root_fd, python);
    if (standard.n > 0)
        take_built_in(&standard);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(folder, sizeof(folder), "%s/%s/%s3.%u/site-packages", python->prefix,
                       i ? "lib64" : "lib", name_of(python), python->minor);
        take_packages(&modules, root_fd, folder);
    }
    /* Debian's own Python looks in folders of its own. */
    if (strcmp(python->prefix, "usr") == 0) {
        (void)snprintf(folder, sizeof(folder), "usr/local/lib/%s3.%u/dist-packages",
                       name_of(python), python->minor);
        take_packages(&modules, root_fd, folder);
        take_packages(&modules, root_fd, "usr/lib/python3/dist-packages");
    }
    names_finish(&standard);
}
