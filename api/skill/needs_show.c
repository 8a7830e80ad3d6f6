/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a skill's needs: warnings with their remedies, JSON, why a run failed. */
#include "api/skill/needs_internal.h"

#include "api/skill/names.h"
#include "api/skill/shell_scan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NODE_REMEDY "the image node has it: say \"image: node\" in SKILL.md"

static const char *const froms[] = {[NEEDS_UNKNOWN] = "unknown",
                                    [NEEDS_STANDARD] = "standard library",
                                    [NEEDS_IMAGE] = "image",
                                    [NEEDS_OWN] = "skill",
                                    [NEEDS_MISSING] = "missing"};

struct remedy {
    const char *names; /* between spaces */
    const char *text;
};

static const char *find_remedy(const struct remedy *remedies, size_t n, const char *name)
{
    char word[NEEDS_TEXT_MAX + 3];

    (void)snprintf(word, sizeof(word), " %s ", name);
    for (size_t i = 0; i + 1 < n; i++)
        if (strstr(remedies[i].names, word))
            return remedies[i].text;
    return remedies[n - 1].text;
}

static const char *module_remedy(const char *module)
{
    static const struct remedy remedies[] = {
        {" pandas polars pyarrow ",
         "it has compiled code; csv, sqlite3 and statistics are there"},
        {" numpy scipy sklearn ", "it has compiled code; statistics, math and array are there"},
        {" lxml ", "it has compiled code; xml.etree.ElementTree, defusedxml and bs4 are there"},
        {" PIL cv2 matplotlib fitz torch tensorflow cryptography psutil Crypto ",
         "it has compiled code, and nothing in the image stands in for it"},
        {" toml tomli ", "tomllib, of the standard library, reads TOML"},
        {" httpx aiohttp urllib2 ",
         "requests and urllib.request are there, and reach nothing but loopback"},
        {" pytz ", "zoneinfo, of the standard library, has time zones"},
        {" simplejson ujson orjson ", "json, of the standard library, is there"},
        {" ruamel ", "yaml is there"},
        {" tkinter ", "a skill has no screen"},
        {" pip setuptools ",
         "nothing can be installed in a run; put modules into the skill's folder"},
        {NULL, "if it is pure Python, put its folder beside the script"},
    };

    return find_remedy(remedies, sizeof(remedies) / sizeof(remedies[0]), module);
}

static const char *program_remedy(const char *program)
{
    static const struct remedy remedies[] = {
        {" pip pip3 uv uvx pipx poetry conda npm yarn pnpm apt apt-get brew ",
         "nothing can be installed in a run; put modules into the skill's folder"},
        {" node ", NODE_REMEDY},
        {" npx deno bun ", "Python, bash and Node run; write that part in one of them"},
        {" sudo su ", "a skill has no privileges; leave it out"},
        {" docker podman ", "a skill runs in a machine of its own and starts no containers"},
        {" wget ", "curl is there, and reaches nothing but loopback"},
        {" rg ag ack ", "grep is there"},
        {" fd tree ", "find is there"},
        {" gawk ", "awk is mawk"},
        {" bc dc ", "awk and python3 calculate"},
        {" yq ", "jq and Python's yaml are there"},
        {" 7z 7za rar unrar bzip2 zstd ", "tar, gzip, xz, zip and unzip are there"},
        {NULL, "use Python, or bring a program that is a script"},
    };

    return find_remedy(remedies, sizeof(remedies) / sizeof(remedies[0]), program);
}

/* Whether an import of a package's module is told already, or expected not to be there. */
static bool is_imported(const struct needs *needs, const char *package)
{
    const char *known = needs_module_of(package);
    char module[NEEDS_TEXT_MAX + 1];

    (void)snprintf(module, sizeof(module), "%s", known ? known : package);
    for (char *p = module; *p; p++)
        *p = *p == '-' ? '_' : *p;
    for (size_t i = 0; i < needs->len; i++)
        if (needs->items[i].kind == NEEDS_MODULE &&
            strcasecmp(needs->items[i].name, module) == 0)
            return true;
    return false;
}

/* Whether the same is missing in a file that comes before. */
static bool is_told(const struct needs *needs, size_t at)
{
    const struct needs_item *item = &needs->items[at];

    for (size_t i = 0; i < at; i++) {
        const struct needs_item *other = &needs->items[i];

        if (other->kind == item->kind && other->from == NEEDS_MISSING && !other->guarded &&
            strcmp(other->name, item->name) == 0)
            return true;
    }
    return item->kind == NEEDS_PACKAGE && is_imported(needs, item->name);
}

static int warn(const struct needs_item *item, struct skill_strings *warnings)
{
    const struct names_shown file = names_shown(item->file), name = names_shown(item->name),
                             detail = names_shown(item->detail ? item->detail : "");

    switch (item->kind) {
    case NEEDS_MODULE:
        if (item->elsewhere)
            return skill_strings_add(
                warnings,
                "%s line %u: the module \"%s\" is not found from there: the "
                "skill has it as %s; add its folder to sys.path",
                file.text, item->line, name.text, names_shown(item->elsewhere).text);
        return skill_strings_add(warnings, "%s line %u: the image has no module \"%s\": %s",
                                 file.text, item->line, name.text, module_remedy(item->name));
    case NEEDS_PROGRAM:
        return skill_strings_add(warnings, "%s line %u: the image has no program \"%s\": %s",
                                 file.text, item->line, name.text, program_remedy(item->name));
    case NEEDS_PACKAGE:
        return skill_strings_add(warnings, "%s line %u: the image has no package \"%s\": %s",
                                 file.text, item->line, name.text,
                                 module_remedy(needs_module_of(item->name)
                                                   ? needs_module_of(item->name)
                                                   : item->name));
    case NEEDS_LANGUAGE:
        if (strcmp(item->name, "Python") == 0)
            return skill_strings_add(warnings,
                                     "%s line %u: it asks for Python %s, and the image has an "
                                     "older one: keep to what that knows",
                                     file.text, item->line, detail.text);
        if (strcmp(item->name, "JavaScript") == 0)
            return skill_strings_add(warnings,
                                     "%s line %u: the image has no Node: " NODE_REMEDY,
                                     file.text, item->line);
        return skill_strings_add(warnings,
                                 "%s line %u: no image runs %s: write it in Python or bash",
                                 file.text, item->line, name.text);
    case NEEDS_FIELD:
        if (strcmp(item->name, "network") == 0)
            return skill_strings_add(
                warnings,
                "%s line %u: it asks for network \"%s\", and a skill reaches "
                "nothing but loopback: hand in what it needs as input files",
                file.text, item->line, detail.text);
        return skill_strings_add(
            warnings,
            "%s line %u: there is no %s \"%s\": it runs in the image python, "
            "which has Python and bash",
            file.text, item->line, name.text, detail.text);
    case NEEDS_HOST:
    case NEEDS_SECRET:
        break;
    }
    return 0;
}

int needs_warn(const struct needs *needs, struct skill_strings *warnings)
{
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < needs->len; i++) {
        const struct needs_item *item = &needs->items[i];

        if (item->from != NEEDS_MISSING || item->guarded || is_told(needs, i))
            continue;
        if (n++ < NEEDS_WARNINGS_MAX)
            r = warn(item, warnings);
    }
    if (r == 0 && n > NEEDS_WARNINGS_MAX)
        r = skill_strings_add(warnings, "%zu more things are missing: skillvm skill inspect",
                              n - NEEDS_WARNINGS_MAX);
    return r;
}

int needs_check(int tar_fd, const struct skill_archive *archive,
                const struct image_manifest *manifest, struct skill *skill)
{
    _cleanup_needs_ struct needs needs = {0};
    int r;

    if (!manifest->known)
        return 0;
    r = needs_read(tar_fd, archive, skill, manifest, &needs, NULL);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    return needs_warn(&needs, &skill->warnings);
}

static void write_item(const struct needs_item *item, struct json_writer *w)
{
    static const char *const names[] = {
        [NEEDS_MODULE] = "module", [NEEDS_PROGRAM] = "program", [NEEDS_PACKAGE] = "package",
        [NEEDS_LANGUAGE] = "name", [NEEDS_FIELD] = "name",      [NEEDS_HOST] = "host",
        [NEEDS_SECRET] = "text"};

    json_write_open(w, NULL, '{');
    json_write_string(w, names[item->kind], item->name);
    if (item->kind == NEEDS_PACKAGE)
        json_write_string(w, "version", item->detail);
    if (item->kind == NEEDS_LANGUAGE || item->kind == NEEDS_FIELD)
        json_write_string(w, item->kind == NEEDS_FIELD ? "value" : "detail", item->detail);
    if (item->kind < NEEDS_HOST)
        json_write_string(w, "from", froms[item->from]);
    json_write_string(w, "file", item->file);
    json_write_number(w, "line", item->line);
    if (item->kind == NEEDS_MODULE || item->kind == NEEDS_PROGRAM)
        json_write_bool(w, "guarded", item->guarded);
    json_write_close(w, '}');
}

void needs_write(const struct needs *needs, struct json_writer *w)
{
    static const struct {
        const char *key;
        enum needs_kind kind;
    } lists[] = {{"imports", NEEDS_MODULE},       {"programs", NEEDS_PROGRAM},
                 {"requirements", NEEDS_PACKAGE}, {"languages", NEEDS_LANGUAGE},
                 {"fields", NEEDS_FIELD},         {"hosts", NEEDS_HOST},
                 {"secrets", NEEDS_SECRET}};
    struct skill_strings warnings = {0};

    json_write_string(w, "image", needs->image[0] ? needs->image : NULL);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_write_open(w, lists[i].key, '[');
        for (size_t at = 0; at < needs->len; at++)
            if (needs->items[at].kind == lists[i].kind)
                write_item(&needs->items[at], w);
        json_write_close(w, ']');
    }
    if (needs_warn(needs, &warnings) < 0)
        w->out.error = w->out.error ? w->out.error : -ENOMEM;
    json_write_strings(w, "warnings", warnings.items, warnings.len);
    json_write_bool(w, "truncated", needs->truncated);
    skill_strings_finish(&warnings);
}

/* What a line of a run's log says is not there. */
struct failure {
    char name[NEEDS_TEXT_MAX + 1]; /* "": nothing so far */
    bool module;
    bool subprocess; /* a traceback through subprocess.py came before */
};

/* Copies what stands before the character that ends a name. False where it is too long. */
static bool take_until(const char *text, size_t len, char end, char ret[NEEDS_TEXT_MAX + 1])
{
    const char *at = len > 0 ? memchr(text, end, len) : NULL;

    if (!at || at == text || (size_t)(at - text) > NEEDS_TEXT_MAX)
        return false;
    memcpy(ret, text, (size_t)(at - text));
    ret[at - text] = '\0';
    return true;
}

/* The word before "command not found" of bash's, or "not found" of dash's. */
static bool take_shell_name(const char *line, const char *end, char ret[NEEDS_TEXT_MAX + 1])
{
    const char *begin = end;

    while (begin > line && begin[-1] != ' ')
        begin--;
    return begin > line + 1 && begin[-2] == ':' &&
           take_until(begin, (size_t)(end - begin) + 1, ':', ret);
}

static void look_at_line(const char *line, size_t len, struct failure *failure)
{
    static const char no_module[] = "ModuleNotFoundError: No module named '";
    static const char no_file[] = "FileNotFoundError: [Errno 2] No such file or directory: '";
    static const char *const no_command[] = {": command not found", ": not found"};
    char name[NEEDS_TEXT_MAX + 1];

    if (len > sizeof(no_module) && memcmp(line, no_module, sizeof(no_module) - 1) == 0) {
        if (take_until(line + sizeof(no_module) - 1, len - sizeof(no_module) + 1, '\'', name)) {
            name[strcspn(name, ".")] = '\0';
            failure->module = true;
            strcpy(failure->name, name);
        }
        return;
    }
    if (len > sizeof(no_file) && memcmp(line, no_file, sizeof(no_file) - 1) == 0) {
        if (failure->subprocess &&
            take_until(line + sizeof(no_file) - 1, len - sizeof(no_file) + 1, '\'', name)) {
            failure->module = false;
            strcpy(failure->name, name);
        }
        return;
    }
    failure->subprocess = failure->subprocess || memmem(line, len, "subprocess.py\"", 14);
    for (size_t i = 0; i < sizeof(no_command) / sizeof(no_command[0]); i++) {
        size_t n = strlen(no_command[i]);

        if (len > n && memcmp(line + len - n, no_command[i], n) == 0 &&
            take_shell_name(line, line + len - n, name)) {
            failure->module = false;
            strcpy(failure->name, name);
            return;
        }
    }
}

static bool is_module_name(const char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

int needs_explain(const struct image_manifest *manifest, const char *log, size_t len, char *ret,
                  size_t size)
{
    struct failure failure = {.name = ""};

    if (!manifest->known)
        return 0;
    while (len > 0) {
        const char *end = memchr(log, '\n', len);
        size_t n = end ? (size_t)(end - log) : len;

        look_at_line(log, n, &failure);
        log += n + (end != NULL);
        len -= n + (end != NULL);
    }
    if (failure.module && failure.name[0] && is_module_name(failure.name) &&
        !image_manifest_has(&manifest->standard, failure.name) &&
        !image_manifest_has(&manifest->modules, failure.name)) {
        (void)snprintf(ret, size, "the image has no module \"%s\": %s", failure.name,
                       module_remedy(failure.name));
        return 1;
    }
    if (!failure.module && shell_is_program(failure.name) &&
        !image_manifest_has(&manifest->programs, failure.name)) {
        (void)snprintf(ret, size, "the image has no program \"%s\": %s", failure.name,
                       program_remedy(failure.name));
        return 1;
    }
    return 0;
}
