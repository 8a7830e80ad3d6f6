/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of needs.h for what is no code: requirements, fields, secrets. */
#include "api/skill/needs_internal.h"
#include "api/skill/requirements.h"
#include "base/package_name.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MASK_SHOWN 4u /* characters of a secret that are shown */

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static const char *module_of(const char *package)
{
    static const struct {
        const char *package, *module;
    } known[] = {
        {"beautifulsoup4", "bs4"},
        {"pyyaml", "yaml"},
        {"python-dateutil", "dateutil"},
        {"pillow", "PIL"},
        {"scikit-learn", "sklearn"},
        {"opencv-python", "cv2"},
        {"python-docx", "docx"},
        {"python-pptx", "pptx"},
        {"python-dotenv", "dotenv"},
        {"pymupdf", "fitz"},
        {"pycryptodome", "Crypto"},
        {"scikit-image", "skimage"},
        {"pdfminer-six", "pdfminer"},
        {"google-genai", "google"},
        {"attrs", "attr"},
        {"msgpack-python", "msgpack"},
        {"opencv-python-headless", "cv2"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].package, package) == 0)
            return known[i].module;
    return NULL;
}

void needs_module_name(const char *package, char ret[NEEDS_TEXT_MAX + 1])
{
    const char *known = module_of(package);

    (void)snprintf(ret, NEEDS_TEXT_MAX + 1, "%s", known ? known : package);
    for (char *p = ret; *p; p++)
        *p = *p == '-' ? '_' : *p;
}

/* Whether the skill brings a package along, as a folder or a file of its module's name. */
static bool is_own(const struct needs_reader *r, const char *name)
{
    char module[NEEDS_TEXT_MAX + 1], file[NEEDS_TEXT_MAX + sizeof(".py")];

    needs_module_name(name, module);
    (void)snprintf(file, sizeof(file), "%s.py", module);
    return needs_has_name(r, module) || needs_has_name(r, file);
}

/* What is read, for who takes it. */
struct requiring {
    struct needs_reader *r;
    const char *file;
};

/* "Name[extra]>=1.0; marker" as PEP 508 has it; what does not begin with a name is none. */
static int add_requirement(const struct requiring *in, const struct requirements_line *line)
{
    struct needs_reader *r = in->r;
    char name[NEEDS_TEXT_MAX + 1], detail[NEEDS_TEXT_MAX / 2 + 1];
    struct needs_item item = {.kind = NEEDS_PACKAGE,
                              .name = name,
                              .file = (char *)(uintptr_t)in->file,
                              .line = line->line};
    struct text_span rest = {line->text, strlen(line->text)};
    size_t n = 0;

    if (++r->uses > NEEDS_USES_MAX)
        return -E2BIG;
    while (n < rest.len && is_name_byte(rest.text[n]))
        n++;
    if (package_name_clean(rest.text, n, name, sizeof(name)) < 0)
        return 0;
    rest = text_trim((struct text_span){rest.text + n, strcspn(rest.text + n, ";")}, " \t");
    /* A file or an address may have a name before it. */
    if (line->kind == REQUIREMENTS_PLACE && (rest.len == 0 || rest.text[0] != '@'))
        return 0;
    (void)snprintf(detail, sizeof(detail), "%.*s", (int)rest.len, rest.text);
    item.detail = detail[0] ? detail : NULL;
    item.own = is_own(r, name);
    if (line->kind == REQUIREMENTS_NAMED && strlen(line->text) <= NEEDS_WANTED_MAX)
        item.wanted = line->text;
    return needs_add(r, &item);
}

/* A language that is wanted in a version: ">=3.12" where the image has less. */
static int add_python(struct needs_reader *r, const char *file, unsigned line,
                      struct text_span text)
{
    char detail[65];
    struct needs_item item = {.kind = NEEDS_LANGUAGE,
                              .name = (char *)(uintptr_t) "Python",
                              .detail = detail,
                              .file = (char *)(uintptr_t)file,
                              .line = line};

    (void)snprintf(detail, sizeof(detail), "%.*s", (int)(text.len < 64 ? text.len : 64),
                   text.text);
    return strstr(detail, "3.") ? needs_add(r, &item) : 0;
}

static int take(void *ctx, const struct requirements_line *line)
{
    const struct requiring *in = ctx;

    if (line->kind == REQUIREMENTS_OPTION)
        return 0;
    if (line->kind == REQUIREMENTS_PYTHON)
        return add_python(in->r, in->file, line->line,
                          (struct text_span){line->text, strlen(line->text)});
    return add_requirement(in, line);
}

int needs_read_requirements(struct needs_reader *r, const char *file, const char *text,
                            size_t len)
{
    struct requiring in = {r, file};

    return requirements_read_file(text, len, take, &in);
}

int needs_read_script_block(struct needs_reader *r, const char *file, const char *text,
                            size_t len)
{
    struct requiring in = {r, file};
    int result = requirements_read_script(text, len, take, &in, NULL);

    /* Whoever needs it all is told what is wrong with it. */
    return result == -EINVAL ? 0 : result;
}

static int add_found(struct needs_reader *r, const char *name, const char *file, unsigned line)
{
    return needs_add(r, &(struct needs_item){.kind = NEEDS_SECRET,
                                             .name = (char *)(uintptr_t)name,
                                             .file = (char *)(uintptr_t)file,
                                             .line = line});
}

static bool is_secret_byte(char c)
{
    return is_name_byte(c) || c == '+' || c == '/' || c == '=';
}

/* What of a secret may be shown. */
static int add_secret(struct needs_reader *r, const char *file, unsigned n,
                      struct text_span secret)
{
    char masked[64];

    (void)snprintf(masked, sizeof(masked), "%.*s… (%zu characters)", (int)MASK_SHOWN,
                   secret.text, secret.len);
    return add_found(r, masked, file, n);
}

/* Words that begin as the keys of well-known services do. */
static bool is_key(struct text_span word)
{
    static const struct {
        const char *begin;
        size_t len; /* at least, of all */
    } keys[] = {
        {"sk-", 20},  {"AKIA", 20},  {"ASIA", 20},        {"ghp_", 36},     {"gho_", 36},
        {"ghs_", 36}, {"xoxb-", 24}, {"xoxp-", 24},       {"AIza", 39},     {"glpat-", 20},
        {"hf_", 30},  {"npm_", 36},  {"github_pat_", 40}, {"sk_live_", 24}, {"rk_live_", 24},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (word.len >= keys[i].len && text_begins_with(word, keys[i].begin))
            for (size_t at = 0; at < word.len; at++)
                if (isdigit((unsigned char)word.text[at]))
                    return true;
    return false;
}

/* The name before a quoted text says what it is: password = "…". */
static bool names_secret(struct text_span before)
{
    static const char *const words[] = {"password", "passwd", "secret", "token",
                                        "api_key",  "apikey", "api-key"};
    char name[48];
    size_t len = 0;

    while (before.len > 0 && strchr(" \t\"':=", before.text[before.len - 1]))
        before.len--;
    while (len < before.len && len < sizeof(name) - 1 &&
           is_name_byte(before.text[before.len - 1 - len]))
        len++;
    (void)snprintf(name, sizeof(name), "%.*s", (int)len, before.text + before.len - len);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) <= len && strcasecmp(name + len - strlen(words[i]), words[i]) == 0)
            return true;
    return false;
}

/* A text in quotes that is no placeholder: letters and digits, and not a few. */
static bool is_password(struct text_span quoted)
{
    bool digit = false, letter = false;

    for (size_t i = 0; i < quoted.len; i++) {
        digit = digit || isdigit((unsigned char)quoted.text[i]);
        letter = letter || isalpha((unsigned char)quoted.text[i]);
        if (strchr(" <>{}$", quoted.text[i]))
            return false;
    }
    return quoted.len >= 8 && digit && letter;
}

static int read_secrets(struct needs_reader *r, const char *file, unsigned n,
                        struct text_span line)
{
    int result = 0;

    if (memmem(line.text, line.len, "-----BEGIN ", 11) &&
        memmem(line.text, line.len, "PRIVATE KEY-----", 16))
        result = add_found(r, "a private key", file, n);
    for (size_t i = 0; result == 0 && i < line.len;) {
        struct text_span word = {line.text + i, 0};
        bool quoted = i > 0 && (line.text[i - 1] == '"' || line.text[i - 1] == '\'');

        while (i + word.len < line.len && is_secret_byte(word.text[word.len]))
            word.len++;
        i += word.len + 1;
        if (is_key(word) ||
            (quoted && i <= line.len && line.text[i - 1] == word.text[-1] &&
             is_password(word) && word.text - line.text >= 2 && strchr("=: ", word.text[-2]) &&
             names_secret((struct text_span){line.text, (size_t)(word.text - line.text) - 1})))
            result = add_secret(r, file, n, word);
    }
    return result;
}

int needs_read_text(struct needs_reader *r, const char *file, const char *text, size_t len)
{
    struct text_span left = {text, len}, line;

    /* What is no text names nothing. */
    if (len > 0 && memchr(text, 0, len))
        return 0;
    for (unsigned n = 1; text_take_line(&left, &line); n++)
        if (needs_read_hosts(r, file, n, line) < 0 || read_secrets(r, file, n, line) < 0)
            return -ENOMEM;
    return 0;
}

/* The line of a field in SKILL.md. */
static unsigned line_of(const struct needs_reader *r, const char *field)
{
    struct text_span left = {r->archive->skill_md, r->archive->skill_md_len}, line;

    for (unsigned n = 1; text_take_line(&left, &line); n++)
        if (text_begins_with(line, field) && line.len > strlen(field) &&
            line.text[strlen(field)] == ':')
            return n;
    return 1;
}

static int add_field(struct needs_reader *r, const char *field, const char *value)
{
    char shown[NEEDS_TEXT_MAX + 1];

    (void)snprintf(shown, sizeof(shown), "%.100s", value);
    return needs_add(r, &(struct needs_item){.kind = NEEDS_FIELD,
                                             .name = (char *)(uintptr_t)field,
                                             .detail = shown,
                                             .file = (char *)(uintptr_t) "SKILL.md",
                                             .line = line_of(r, field)});
}

/* The program that a word of compatibility stands for, or NULL. */
static const char *program_of(struct text_span word)
{
    static const struct {
        const char *word, *program;
    } known[] = {
        {"node", "node"},
        {"node.js", "node"},
        {"nodejs", "node"},
        {"npm", "npm"},
        {"docker", "docker"},
        {"ffmpeg", "ffmpeg"},
        {"pandoc", "pandoc"},
        {"git", "git"},
        {"libreoffice", "soffice"},
        {"graphviz", "dot"},
        {"tesseract", "tesseract"},
        {"jq", "jq"},
        {"imagemagick", "convert"},
        {"poppler", "pdftotext"},
        {"curl", "curl"},
        {"ruby", "ruby"},
        {"uv", "uv"},
        {"java", "java"},
        {"chrome", "chrome"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (word.len == strlen(known[i].word) &&
            strncasecmp(word.text, known[i].word, word.len) == 0)
            return known[i].program;
    return NULL;
}

/* The version behind a language's name: "Python 3.11", "Node.js (>= 18)". */
static int read_version(struct needs_reader *r, unsigned line, struct text_span word,
                        const char *rest)
{
    const char *program = program_of(word), *version = rest + strspn(rest, " (>=v");
    size_t n = strspn(version, "0123456789.");
    char range[32];

    while (n > 0 && version[n - 1] == '.')
        n--;
    if (n == 0 || n > 16)
        return 0;
    if (word.len == 6 && strncasecmp(word.text, "python", 6) == 0 &&
        strncmp(version, "3.", 2) == 0)
        return add_python(r, "SKILL.md", line, (struct text_span){version, n});
    if (!program || strcmp(program, "node") != 0)
        return 0;
    (void)snprintf(range, sizeof(range), ">=%.*s", (int)n, version);
    return needs_add_node(r, "SKILL.md", line, range);
}

static int add_program_of(struct needs_reader *r, unsigned line, struct text_span word)
{
    const char *program = program_of(word);

    if (!program)
        return 0;
    return needs_add(r, &(struct needs_item){.kind = NEEDS_PROGRAM,
                                             .name = (char *)(uintptr_t)program,
                                             .file = (char *)(uintptr_t) "SKILL.md",
                                             .line = line,
                                             .own = needs_has_file(r, program)});
}

/* The programs and versions that a sentence of compatibility names. */
static int read_compatibility(struct needs_reader *r, const char *text)
{
    unsigned line = line_of(r, "compatibility");

    for (const char *at = text; *at;) {
        struct text_span word = {at, 0};

        while (is_name_byte(*at))
            at++;
        word.len = (size_t)(at - word.text);
        while (word.len > 0 && word.text[word.len - 1] == '.')
            word.len--;
        if (word.len > 0 &&
            (add_program_of(r, line, word) < 0 || read_version(r, line, word, at) < 0))
            return -ENOMEM;
        at += *at && !is_name_byte(*at) ? 1 : 0;
    }
    return 0;
}

int needs_read_fields(struct needs_reader *r)
{
    const struct skill *skill = r->skill;
    int result = skill->lang ? add_field(r, "lang", skill->lang) : 0;

    if (result == 0 && skill->image)
        result = add_field(r, "image", skill->image);
    if (result == 0 && skill->network && skill->network[0])
        result = add_field(r, "network", skill->network);
    if (result == 0 && skill->compatibility)
        result = read_compatibility(r, skill->compatibility);
    return result;
}
