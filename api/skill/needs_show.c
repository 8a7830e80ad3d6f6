/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a skill's needs: warnings with their remedies, JSON, why a run failed. */
#include "api/skill/needs_internal.h"

#include "api/skill/file_names.h"
#include "api/skill/js_imports.h"
#include "api/skill/language.h"
#include "api/skill/shell_scan.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const froms[] = {
    [NEEDS_UNKNOWN] = "unknown", [NEEDS_STANDARD] = "standard library",
    [NEEDS_IMAGE] = "image",     [NEEDS_OWN] = "skill",
    [NEEDS_MISSING] = "missing", [NEEDS_NOT_ASKED] = "not asked for"};

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
        {" PIL cv2 matplotlib torch tensorflow cryptography psutil Crypto ",
         "it has compiled code, and nothing in the image stands in for it: put a wheel of it "
         "into wheels/"},
        {" pdf2image pytesseract ",
         "it starts a program: pdftoppm and tesseract are in the image data, or put a wheel of "
         "it into wheels/"},
        {" pptx pdfplumber camelot tabula ",
         "no image has it: put a wheel of it, and of what it requires, into wheels/"},
        {" toml tomli ", "tomllib, of the standard library, reads TOML"},
        {" httpx aiohttp urllib2 ", "requests and urllib.request are there, and reach the "
                                    "hosts that network: in SKILL.md lists"},
        {" pytz ", "zoneinfo, of the standard library, has time zones"},
        {" simplejson ujson orjson ", "json, of the standard library, is there"},
        {" ruamel ", "yaml is there"},
        {" tkinter ", "a skill has no screen"},
        {" pip setuptools ", "nothing can be installed in a run; put modules into the skill's "
                             "folder, or wheels into its wheels/"},
        {NULL, "if it is pure Python, put its folder beside the script, else a wheel of it "
               "into wheels/"},
    };

    return find_remedy(remedies, sizeof(remedies) / sizeof(remedies[0]), module);
}

static const char *node_remedy(const char *module)
{
    static const struct remedy remedies[] = {
        {" axios node-fetch cross-fetch isomorphic-fetch got request undici superagent ",
         "fetch, of Node itself, is there, and reaches the hosts that network: in SKILL.md "
         "lists"},
        {" puppeteer puppeteer-core playwright playwright-core jsdom-global electron ",
         "a skill has no browser"},
        {" sharp canvas @napi-rs/canvas sqlite3 better-sqlite3 bcrypt node-gyp ",
         "it has compiled code: put it into node_modules, built for Linux on x86_64"},
        {" rimraf mkdirp del ", "node:fs has rmSync and mkdirSync with recursive: true"},
        {" typescript ts-node tsx esbuild ", "put what it makes of the sources into the skill"},
        {" jest mocha vitest chai ", "node:test and node:assert, of Node itself, are there"},
        {" npm yarn pnpm ",
         "nothing can be installed in a run; put packages into node_modules"},
        {NULL,
         "install it into a node_modules beside the script, and push that with the skill"},
    };

    return find_remedy(remedies, sizeof(remedies) / sizeof(remedies[0]), module);
}

static const char *program_remedy(const char *program)
{
    static const struct remedy remedies[] = {
        {" pip pip3 uv uvx pipx poetry conda yarn pnpm apt apt-get brew ",
         "nothing can be installed in a run; put modules into the skill's folder, or wheels "
         "into its wheels/"},
        {" node npm npx deno bun ", "write that part in Python or bash"},
        {" sudo su ", "a skill has no privileges; leave it out"},
        {" docker podman ", "a skill runs in a machine of its own and starts no containers"},
        {" wget ", "curl is there, and reaches the hosts that network: in SKILL.md lists"},
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

#define HELP_SIZE 192u

/* Which image has it, in a sentence's end; "" for none. */
static const char *help_text(const struct needs_item *item, char ret[HELP_SIZE])
{
    static const char *const texts[] = {
        [NEEDS_HELP_HERE] = "has it: image: in SKILL.md, or the request's image, names one",
        [NEEDS_HELP_FORBIDDEN] = "has it, which may not be used",
        [NEEDS_HELP_AWAY] = "has it, which is not installed here"};

    ret[0] = '\0';
    if (item->help != NEEDS_NO_HELP)
        (void)snprintf(ret, HELP_SIZE, "the image %s %s", item->helper, texts[item->help]);
    if (item->help == NEEDS_HELP_AWAY)
        (void)snprintf(ret + strlen(ret), HELP_SIZE - strlen(ret),
                       ": `skillvm image build %s` makes it", item->helper);
    return ret;
}

/* What it is listed as, in whatever language. */
static enum needs_kind kind_of(const struct needs_item *item)
{
    return item->kind == NEEDS_NODE_MODULE    ? NEEDS_MODULE
           : item->kind == NEEDS_NODE_PACKAGE ? NEEDS_PACKAGE
                                              : item->kind;
}

/* What a person calls a thing of an image. */
static const char *what_of(const struct needs_item *item)
{
    enum needs_kind kind = kind_of(item);

    return kind == NEEDS_MODULE ? "module" : kind == NEEDS_PACKAGE ? "package" : "program";
}

/* Of one that no image here runs. */
static const char *language_remedy(const char *name)
{
    const struct language *language = language_of_name(name);

    if (strcmp(name, "JavaScript") == 0)
        return "`skillvm image build node` makes one that does";
    return language && language->remedy ? language->remedy
                                        : "write it in Python, bash or JavaScript";
}

static const char *remedy_of(const struct needs_item *item)
{
    char module[NEEDS_TEXT_MAX + 1];

    if (item->kind == NEEDS_PROGRAM)
        return program_remedy(item->name);
    if (item->kind == NEEDS_NODE_MODULE || item->kind == NEEDS_NODE_PACKAGE)
        return node_remedy(item->name);
    if (item->kind == NEEDS_MODULE)
        return module_remedy(item->name);
    needs_module_name(item->name, module);
    return module_remedy(module);
}

/* Which thing of an image is not there. */
static int warn_of(const struct needs *needs, const struct needs_item *item,
                   struct skill_strings *warnings)
{
    const struct names_shown file = names_shown(item->file), name = names_shown(item->name);
    char help[HELP_SIZE];

    (void)help_text(item, help);
    return skill_warn(warnings, "%s line %u: the image %s has no %s \"%s\": %s%s%s", file.text,
                      item->line, needs->image, what_of(item), name.text, remedy_of(item),
                      help[0] ? "; " : "", help);
}

static int warn_of_module(const struct needs *needs, const struct needs_item *item,
                          struct skill_strings *warnings)
{
    /* Where another image has it, a file of the skill's that is called so is something else. */
    if (!item->elsewhere || item->help != NEEDS_NO_HELP)
        return warn_of(needs, item, warnings);
    return skill_warn(warnings,
                      "%s line %u: the module \"%s\" is not found from there: the "
                      "skill has it as %s; add its folder to sys.path",
                      names_shown(item->file).text, item->line, names_shown(item->name).text,
                      names_shown(item->elsewhere).text);
}

static int warn_of_language(const struct needs *needs, const struct needs_item *item,
                            struct skill_strings *warnings)
{
    const struct names_shown file = names_shown(item->file), name = names_shown(item->name);
    bool older = item->detail && strcmp(item->name, "Python") == 0 && needs->has_python;
    char help[HELP_SIZE];

    (void)help_text(item, help);
    if (older)
        return skill_warn(warnings,
                          "%s line %u: it asks for Python %s, and the image %s has an "
                          "older one: keep to what that knows%s%s",
                          file.text, item->line, names_shown(item->detail).text, needs->image,
                          help[0] ? "; " : "", help);
    if (help[0])
        return skill_warn(warnings, "%s line %u: the image %s does not run %s: %s", file.text,
                          item->line, needs->image, name.text, help);
    return skill_warn(warnings, "%s line %u: no image runs %s: %s", file.text, item->line,
                      name.text, language_remedy(item->name));
}

/* What the image has in a version that is not asked for. */
static int warn_of_version(const struct needs *needs, const struct needs_item *item,
                           struct skill_strings *warnings)
{
    const char *remedy = item->kind == NEEDS_PACKAGE
                             ? "put a wheel of it into wheels/, or ask for what the image has"
                         : item->kind == NEEDS_NODE_PACKAGE
                             ? "put it into node_modules, or ask for what the image has"
                             : "keep to what that knows";
    char help[HELP_SIZE];

    (void)help_text(item, help);
    return skill_warn(warnings,
                      "%s line %u: it asks for %s %s, and the image %s has %s: %s%s%s",
                      names_shown(item->file).text, item->line, names_shown(item->name).text,
                      names_shown(item->detail ? item->detail : "").text, needs->image,
                      names_shown(item->version).text, remedy, help[0] ? "; " : "", help);
}

static int warn_of_field(const struct needs *needs, const struct needs_item *item,
                         struct skill_strings *warnings)
{
    const struct names_shown name = names_shown(item->name), detail = names_shown(item->detail);
    char help[HELP_SIZE];

    (void)help_text(item, help);
    if (strcmp(item->name, "image") == 0 && item->help == NEEDS_HELP_FORBIDDEN)
        return skill_warn(warnings,
                          "SKILL.md line %u: the image \"%s\" may not be used here: "
                          "no run that asks for it is accepted",
                          item->line, detail.text);
    if (strcmp(item->name, "image") == 0 && item->help == NEEDS_HELP_AWAY)
        return skill_warn(warnings,
                          "SKILL.md line %u: there is no image \"%s\" here, and `skillvm image "
                          "build %s` makes it: it runs in the image %s, which has %s",
                          item->line, detail.text, item->helper, needs->image, needs->runs);
    if (strcmp(item->name, "lang") == 0 && !language_of_name(item->detail))
        return skill_warn(warnings,
                          "SKILL.md line %u: lang is python, bash or node, and not \"%s\": "
                          "name one, or remove it where the file's name says it",
                          item->line, detail.text);
    return skill_warn(warnings,
                      "SKILL.md line %u: there is no %s \"%s\"%s: it runs in the image "
                      "%s, which has %s%s%s",
                      item->line, name.text, detail.text,
                      strcmp(item->name, "image") == 0 ? " here" : " there", needs->image,
                      needs->runs, help[0] ? "; " : "", help);
}

static int warn_of_host(const struct needs *needs, const struct needs_item *item,
                        struct skill_strings *warnings)
{
    const struct names_shown file = names_shown(item->file);
    bool has_list = false;

    for (size_t i = 0; i < needs->len; i++)
        has_list = has_list || (needs->items[i].kind == NEEDS_FIELD &&
                                strcmp(needs->items[i].name, "network") == 0);
    if (has_list)
        return skill_warn(warnings,
                          "%s line %u: it connects to %s, which network: in SKILL.md does not "
                          "have: add it there, as in network: [%s]",
                          file.text, item->line, item->name, item->name);
    return skill_warn(warnings,
                      "%s line %u: it connects to %s, and a skill reaches only hosts that "
                      "SKILL.md declares: write network: [%s] there, or network: none",
                      file.text, item->line, item->name, item->name);
}

static int warn(const struct needs *needs, const struct needs_item *item,
                struct skill_strings *warnings)
{
    if (item->unfit)
        return warn_of_version(needs, item, warnings);
    switch (item->kind) {
    case NEEDS_MODULE:
        return warn_of_module(needs, item, warnings);
    case NEEDS_PROGRAM:
    case NEEDS_PACKAGE:
    case NEEDS_NODE_MODULE:
    case NEEDS_NODE_PACKAGE:
        return warn_of(needs, item, warnings);
    case NEEDS_LANGUAGE:
        return warn_of_language(needs, item, warnings);
    case NEEDS_FIELD:
        return warn_of_field(needs, item, warnings);
    case NEEDS_HOST:
        return warn_of_host(needs, item, warnings);
    case NEEDS_SECRET:
        break;
    }
    return 0;
}

/* Whether something that says it all is said: an image without Python has none of its modules.
 */
static bool is_implied(const struct needs *needs, const struct needs_item *item)
{
    enum needs_kind kind = kind_of(item);
    const struct language *lang = kind == NEEDS_FIELD && strcmp(item->name, "lang") == 0
                                      ? language_of_name(item->detail)
                                      : NULL;

    /* Whoever loaded the skill was told. */
    if (lang && !lang->lang)
        return true;
    if (kind == NEEDS_LANGUAGE && strcmp(item->name, "Node.js") == 0)
        return !needs->has_node;
    return (kind == NEEDS_MODULE || kind == NEEDS_PACKAGE) &&
           !(item->kind == kind ? needs->has_python : needs->has_node);
}

static bool is_warned_of(const struct needs *needs, size_t at)
{
    const struct needs_item *item = &needs->items[at];

    if (item->kind == NEEDS_HOST)
        return item->connects && !item->declared && !needs->says_hosts &&
               !needs_is_repeated(needs, at);
    return item->unfit || (item->from == NEEDS_MISSING && !item->guarded &&
                           !is_implied(needs, item) && !needs_is_repeated(needs, at));
}

int needs_warn(const struct needs *needs, struct skill_strings *warnings)
{
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < needs->len; i++) {
        if (!is_warned_of(needs, i))
            continue;
        if (n++ < NEEDS_WARNINGS_MAX)
            r = warn(needs, &needs->items[i], warnings);
    }
    if (r == 0 && n > NEEDS_WARNINGS_MAX)
        r = skill_warn(warnings,
                       "%zu more things are missing or not declared: skillvm skill inspect",
                       n - NEEDS_WARNINGS_MAX);
    return r;
}

static void write_item(const struct needs_item *item, struct json_writer *w)
{
    static const char *const names[] = {
        [NEEDS_MODULE] = "module", [NEEDS_PROGRAM] = "program", [NEEDS_PACKAGE] = "package",
        [NEEDS_LANGUAGE] = "name", [NEEDS_FIELD] = "name",      [NEEDS_HOST] = "host",
        [NEEDS_SECRET] = "text"};

    enum needs_kind kind = kind_of(item);

    json_write_open(w, NULL, '{');
    json_write_string(w, names[kind], item->name);
    if (kind == NEEDS_PACKAGE)
        json_write_string(w, "version", item->detail);
    if (kind == NEEDS_LANGUAGE || kind == NEEDS_FIELD)
        json_write_string(w, kind == NEEDS_FIELD ? "value" : "detail", item->detail);
    if (kind < NEEDS_HOST)
        json_write_string(w, "from", froms[item->from]);
    if (kind == NEEDS_PACKAGE || kind == NEEDS_LANGUAGE) {
        json_write_string(w, "image_version", item->version[0] ? item->version : NULL);
        json_write_bool(w, "fits", item->from != NEEDS_MISSING && !item->unfit);
    }
    json_write_string(w, "file", item->file);
    json_write_number(w, "line", item->line);
    if (kind == NEEDS_MODULE || kind == NEEDS_PROGRAM)
        json_write_bool(w, "guarded", item->guarded);
    if (kind == NEEDS_HOST) {
        json_write_bool(w, "connects", item->connects);
        json_write_bool(w, "declared", item->declared);
    }
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

    json_write_string(w, "image", needs->image);
    json_write_string(w, "image_reason", needs->why);
    json_write_bool(w, "image_known", needs->known);
    if (needs->memory_bytes > 0)
        json_write_number(w, "image_memory_bytes", needs->memory_bytes);
    else
        json_write_string(w, "image_memory_bytes", NULL);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_write_open(w, lists[i].key, '[');
        for (size_t at = 0; at < needs->len; at++)
            if (kind_of(&needs->items[at]) == lists[i].kind)
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
    enum needs_kind kind;          /* a module, a program */
    bool subprocess;               /* a traceback through subprocess.py came before */
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

/* The words that a name follows, the character that ends it, and what is called so. */
static const struct {
    const char *text;
    char end;
    enum needs_kind kind;
    bool subprocess; /* only behind a traceback through it */
} beginnings[] = {
    {"ModuleNotFoundError: No module named '", '\'', NEEDS_MODULE, false},
    {"FileNotFoundError: [Errno 2] No such file or directory: '", '\'', NEEDS_PROGRAM, true},
    {"Error: Cannot find module '", '\'', NEEDS_NODE_MODULE, false},
    {"Error [ERR_MODULE_NOT_FOUND]: Cannot find package '", '\'', NEEDS_NODE_MODULE, false},
    {"Error: spawn ", ' ', NEEDS_PROGRAM, false},
    {"Error: spawnSync ", ' ', NEEDS_PROGRAM, false},
};

static void fail_of(struct failure *failure, enum needs_kind kind, const char *name)
{
    failure->kind = kind;
    strcpy(failure->name, name);
}

/* Whether a line is one that an interpreter ends with. */
static bool look_at_error(const char *line, size_t len, struct failure *failure)
{
    char name[NEEDS_TEXT_MAX + 1];

    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        size_t n = strlen(beginnings[i].text);

        if (len <= n || memcmp(line, beginnings[i].text, n) != 0)
            continue;
        if ((failure->subprocess || !beginnings[i].subprocess) &&
            take_until(line + n, len - n, beginnings[i].end, name))
            fail_of(failure, beginnings[i].kind, name);
        return true;
    }
    return false;
}

static void look_at_line(const char *line, size_t len, struct failure *failure)
{
    static const char *const no_command[] = {": command not found", ": not found"};
    char name[NEEDS_TEXT_MAX + 1];

    if (look_at_error(line, len, failure))
        return;
    failure->subprocess = failure->subprocess || memmem(line, len, "subprocess.py\"", 14);
    for (size_t i = 0; i < sizeof(no_command) / sizeof(no_command[0]); i++) {
        size_t n = strlen(no_command[i]);

        if (len > n && memcmp(line + len - n, no_command[i], n) == 0 &&
            take_shell_name(line, line + len - n, name)) {
            fail_of(failure, NEEDS_PROGRAM, name);
            return;
        }
    }
}

/* What the name of a failure is a name of: false for what names nothing. */
static bool take_name(const struct failure *failure, char ret[IMPORTS_NAME_MAX + 1])
{
    if (failure->kind == NEEDS_NODE_MODULE)
        return js_package_name(failure->name, ret);
    strcpy(ret, failure->name);
    if (failure->kind == NEEDS_PROGRAM)
        return shell_is_program(ret);
    ret[strcspn(ret, ".")] = '\0';
    for (const char *p = ret; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return *ret != '\0';
}

/* The sentence about a thing, unless the image has it. As needs_explain. */
static int explain(const struct image_list *images, image_set_t allowed, unsigned place,
                   struct needs_item *item, char *ret, size_t size)
{
    char help[HELP_SIZE];

    if (needs_from_in(&images->list[place].manifest, item) != NEEDS_MISSING)
        return 0;
    needs_find_help(item, images, allowed);
    (void)help_text(item, help);
    (void)snprintf(ret, size, "the image %s has no %s \"%s\": %s%s%s", images->list[place].name,
                   what_of(item), item->name, remedy_of(item), help[0] ? "; " : "", help);
    return 1;
}

int needs_explain(const struct image_list *images, image_set_t allowed, unsigned place,
                  const char *log, size_t len, char *ret, size_t size)
{
    struct failure failure = {.kind = NEEDS_PROGRAM};
    char name[IMPORTS_NAME_MAX + 1];
    struct needs_item item = {.name = name};
    struct text_span rest = {log, len}, line;

    while (text_take_line(&rest, &line))
        look_at_line(line.text, line.len, &failure);
    item.kind = failure.kind;
    return take_name(&failure, name) ? explain(images, allowed, place, &item, ret, size) : 0;
}
