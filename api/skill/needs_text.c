/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of needs.h for what is no code: requirements, fields, hosts, secrets. */
#include "api/skill/needs_internal.h"
#include "base/package_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MASK_SHOWN 4u /* characters of a secret that are shown */

/* A part of a text. */
struct part {
    const char *text;
    size_t len;
};

/* The next line of what is left, without its end; false after the last. */
static bool next_line(struct part *left, struct part *ret)
{
    const char *end;

    if (left->len == 0)
        return false;
    end = memchr(left->text, '\n', left->len);
    ret->text = left->text;
    ret->len = end ? (size_t)(end - left->text) : left->len;
    left->text += ret->len + (end != NULL);
    left->len -= ret->len + (end != NULL);
    if (ret->len > 0 && ret->text[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

static struct part trim(struct part part)
{
    while (part.len > 0 && (*part.text == ' ' || *part.text == '\t')) {
        part.text++;
        part.len--;
    }
    while (part.len > 0 && (part.text[part.len - 1] == ' ' || part.text[part.len - 1] == '\t'))
        part.len--;
    return part;
}

static bool begins_with(struct part part, const char *text)
{
    size_t len = strlen(text);

    return part.len >= len && memcmp(part.text, text, len) == 0;
}

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
    for (size_t i = 0; i < r->archive->n_entries; i++) {
        const char *slash = strrchr(r->archive->entries[i].path, '/');
        const char *last = slash ? slash + 1 : r->archive->entries[i].path;

        if (strcasecmp(last, module) == 0 || strcasecmp(last, file) == 0)
            return true;
    }
    return false;
}

/* "Name[extra]>=1.0; marker" as PEP 508 has it; what does not begin with a name is none. */
static int add_requirement(struct needs_reader *r, const char *file, unsigned line,
                           struct part part)
{
    char name[NEEDS_TEXT_MAX + 1], detail[NEEDS_TEXT_MAX + 1];
    struct needs_item item = {
        .kind = NEEDS_PACKAGE, .name = name, .file = (char *)(uintptr_t)file, .line = line};
    size_t n = 0, rest = 0;

    if (++r->uses > NEEDS_USES_MAX)
        return -E2BIG;
    part = trim(part);
    while (n < part.len && is_name_byte(part.text[n]))
        n++;
    if (package_name_clean(part.text, n, name, sizeof(name)) < 0)
        return 0;
    while (n + rest < part.len && rest < NEEDS_TEXT_MAX / 2 &&
           !strchr(";#", part.text[n + rest]))
        rest++;
    part = trim((struct part){part.text + n, rest});
    (void)snprintf(detail, sizeof(detail), "%.*s", (int)part.len, part.text);
    item.detail = detail[0] ? detail : NULL;
    item.own = is_own(r, name);
    return needs_add(r, &item);
}

int needs_read_requirements(struct needs_reader *r, const char *file, const char *text,
                            size_t len)
{
    struct part left = {text, len}, line;
    int result = 0;

    for (unsigned n = 1; result == 0 && next_line(&left, &line); n++)
        result = add_requirement(r, file, n, line);
    return result;
}

/* A language that is wanted in a version: ">=3.12" where the image has less. */
static int add_python(struct needs_reader *r, const char *file, unsigned line, struct part text)
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

/* The text between the quotes at the start of a part; *left is behind it. */
static bool take_quoted(struct part *left, struct part *ret)
{
    const char *end;

    while (left->len > 0 && *left->text != '"' && *left->text != '\'' && *left->text != ']') {
        left->text++;
        left->len--;
    }
    if (left->len == 0 || *left->text == ']')
        return false;
    end = memchr(left->text + 1, *left->text, left->len - 1);
    if (!end)
        return false;
    *ret = (struct part){left->text + 1, (size_t)(end - left->text) - 1};
    left->len -= (size_t)(end - left->text) + 1;
    left->text = end + 1;
    return true;
}

/* One line within the block, without its "#". *in_list: the dependencies' brackets are open. */
static int read_block_line(struct needs_reader *r, const char *file, unsigned n,
                           struct part line, bool *in_list)
{
    struct part quoted;
    int result = 0;

    line = trim(line);
    if (begins_with(line, "requires-python"))
        return take_quoted(&line, &quoted) ? add_python(r, file, n, quoted) : 0;
    if (begins_with(line, "dependencies") && memchr(line.text, '[', line.len))
        *in_list = true;
    if (!*in_list || begins_with(line, "#"))
        return 0;
    while (result == 0 && take_quoted(&line, &quoted))
        result = add_requirement(r, file, n, quoted);
    /* What is left begins at a bracket outside quotes, or has no text in quotes. */
    *in_list = !(line.len > 0 && memchr(line.text, ']', line.len));
    return result;
}

int needs_read_script_block(struct needs_reader *r, const char *file, const char *text,
                            size_t len)
{
    struct part left = {text, len}, line;
    bool inside = false, in_list = false;
    int result = 0;

    for (unsigned n = 1; result == 0 && next_line(&left, &line); n++) {
        if (!inside) {
            inside =
                line.len == sizeof("# /// script") - 1 && begins_with(line, "# /// script");
            continue;
        }
        if (!begins_with(line, "#") || (line.len == 5 && begins_with(line, "# ///")))
            return 0;
        result =
            read_block_line(r, file, n, (struct part){line.text + 1, line.len - 1}, &in_list);
    }
    return result;
}

static int add_found(struct needs_reader *r, enum needs_kind kind, const char *name,
                     const char *file, unsigned line)
{
    return needs_add(r, &(struct needs_item){.kind = kind,
                                             .name = (char *)(uintptr_t)name,
                                             .file = (char *)(uintptr_t)file,
                                             .line = line});
}

/* The host behind "://" in a line. */
static int add_host(struct needs_reader *r, const char *file, unsigned n, struct part rest)
{
    char host[NEEDS_TEXT_MAX + 1];
    size_t len = 0;

    while (len < rest.len && (is_name_byte(rest.text[len]) || rest.text[len] == ':') &&
           rest.text[len] != '_')
        len++;
    while (len > 0 && (rest.text[len - 1] == '.' || rest.text[len - 1] == ':'))
        len--;
    if (len == 0 || len > NEEDS_TEXT_MAX)
        return 0;
    memcpy(host, rest.text, len);
    host[len] = '\0';
    for (char *p = host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return strchr(host, '.') || strncmp(host, "localhost", 9) == 0
               ? add_found(r, NEEDS_HOST, host, file, n)
               : 0;
}

static int read_hosts(struct needs_reader *r, const char *file, unsigned n, struct part line)
{
    static const char *const schemes[] = {"http", "https", "ws", "wss"};
    const char *at = line.text, *end = line.text + line.len;
    int result = 0;

    while (result == 0 && (at = memmem(at, (size_t)(end - at), "://", 3))) {
        bool is_url = false;

        for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
            size_t len = strlen(schemes[i]);

            is_url = is_url || ((size_t)(at - line.text) >= len &&
                                strncasecmp(at - len, schemes[i], len) == 0);
        }
        at += 3;
        if (is_url)
            result = add_host(r, file, n, (struct part){at, (size_t)(end - at)});
    }
    return result;
}

static bool is_secret_byte(char c)
{
    return is_name_byte(c) || c == '+' || c == '/' || c == '=';
}

/* What of a secret may be shown. */
static int add_secret(struct needs_reader *r, const char *file, unsigned n, struct part secret)
{
    char masked[64];

    (void)snprintf(masked, sizeof(masked), "%.*s… (%zu characters)", (int)MASK_SHOWN,
                   secret.text, secret.len);
    return add_found(r, NEEDS_SECRET, masked, file, n);
}

/* Words that begin as the keys of well-known services do. */
static bool is_key(struct part word)
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
        if (word.len >= keys[i].len && begins_with(word, keys[i].begin))
            for (size_t at = 0; at < word.len; at++)
                if (isdigit((unsigned char)word.text[at]))
                    return true;
    return false;
}

/* The name before a quoted text says what it is: password = "…". */
static bool names_secret(struct part before)
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
static bool is_password(struct part quoted)
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

static int read_secrets(struct needs_reader *r, const char *file, unsigned n, struct part line)
{
    int result = 0;

    if (memmem(line.text, line.len, "-----BEGIN ", 11) &&
        memmem(line.text, line.len, "PRIVATE KEY-----", 16))
        result = add_found(r, NEEDS_SECRET, "a private key", file, n);
    for (size_t i = 0; result == 0 && i < line.len;) {
        struct part word = {line.text + i, 0};
        bool quoted = i > 0 && (line.text[i - 1] == '"' || line.text[i - 1] == '\'');

        while (i + word.len < line.len && is_secret_byte(word.text[word.len]))
            word.len++;
        i += word.len + 1;
        if (is_key(word) ||
            (quoted && i <= line.len && line.text[i - 1] == word.text[-1] &&
             is_password(word) && word.text - line.text >= 2 && strchr("=: ", word.text[-2]) &&
             names_secret((struct part){line.text, (size_t)(word.text - line.text) - 1})))
            result = add_secret(r, file, n, word);
    }
    return result;
}

int needs_read_text(struct needs_reader *r, const char *file, const char *text, size_t len)
{
    struct part left = {text, len}, line;

    /* What is no text names nothing. */
    if (len > 0 && memchr(text, 0, len))
        return 0;
    for (unsigned n = 1; next_line(&left, &line); n++)
        if (read_hosts(r, file, n, line) < 0 || read_secrets(r, file, n, line) < 0)
            return -ENOMEM;
    return 0;
}

/* The line of a field in SKILL.md. */
static unsigned line_of(const struct needs_reader *r, const char *field)
{
    struct part left = {r->archive->skill_md, r->archive->skill_md_len}, line;

    for (unsigned n = 1; next_line(&left, &line); n++)
        if (begins_with(line, field) && line.len > strlen(field) &&
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

/* The programs and versions that a sentence of compatibility names. */
static int read_compatibility(struct needs_reader *r, const char *text)
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
    unsigned line = line_of(r, "compatibility");
    int result = 0;

    for (const char *at = text; result == 0 && *at;) {
        size_t len = 0;
        struct part word;

        while (is_name_byte(at[len]))
            len++;
        word = (struct part){at, len};
        while (word.len > 0 && word.text[word.len - 1] == '.')
            word.len--;
        for (size_t i = 0; result == 0 && i < sizeof(known) / sizeof(known[0]); i++)
            if (word.len == strlen(known[i].word) &&
                strncasecmp(word.text, known[i].word, word.len) == 0)
                result = needs_add(
                    r, &(struct needs_item){.kind = NEEDS_PROGRAM,
                                            .name = (char *)(uintptr_t)known[i].program,
                                            .file = (char *)(uintptr_t) "SKILL.md",
                                            .line = line,
                                            .own = needs_has_file(r, known[i].program)});
        at += len;
        if (result == 0 && word.len == 6 && strncasecmp(word.text, "python", 6) == 0 &&
            strncmp(at + strspn(at, " >="), "3.", 2) == 0) {
            at += strspn(at, " >=");
            result =
                add_python(r, "SKILL.md", line, (struct part){at, strspn(at, "0123456789.")});
        }
        at += *at && !is_name_byte(*at) ? 1 : 0;
    }
    return result;
}

int needs_read_fields(struct needs_reader *r)
{
    const struct skill *skill = r->skill;
    int result = skill->lang ? add_field(r, "lang", skill->lang) : 0;

    if (result == 0 && skill->image)
        result = add_field(r, "image", skill->image);
    if (result == 0 && skill->network)
        result = add_field(r, "network", skill->network);
    if (result == 0 && skill->compatibility)
        result = read_compatibility(r, skill->compatibility);
    return result;
}
