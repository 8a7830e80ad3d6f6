/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/code.h"

#include "api/skill/file_names.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#define SKILL_MD                                                                               \
    "---\n"                                                                                    \
    "name: code\n"                                                                             \
    "description: Code that was given without a skill.\n"                                      \
    "---\n"

static const struct {
    const char *lang;
    const char *script;
} scripts[] = {{"python", "main.py"}, {"bash", "main.sh"}, {"node", "main.js"}};

static const char *script_of(const char *lang)
{
    for (size_t i = 0; lang && i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(lang, scripts[i].lang) == 0)
            return scripts[i].script;
    }
    return NULL;
}

/* Whether a statement begins with the word; not a call or a longer word. */
static bool begins_statement(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len > n && memcmp(line, word, n) == 0 && memchr(" \t\"'{*", line[n], 6);
}

/* Whether a line of JavaScript begins as only an ES module's may. */
static bool is_es_module(const char *text, size_t len)
{
    struct text_span rest = {text, len}, line;

    while (text_take_line(&rest, &line))
        if (begins_statement(line.text, line.len, "import") ||
            begins_statement(line.text, line.len, "export"))
            return true;
    return false;
}

int code_check_language(const struct language *language, const char *what,
                        const char **ret_lang, struct err *err)
{
    const struct names_shown shown = names_shown(what);

    if (!language)
        return err_set(err, EINVAL, "%s: its language is unknown; code is python, bash or node",
                       shown.text);
    if (!script_of(language->lang))
        return err_set(
            err, EINVAL,
            "%s is in %s, which does not run here; write it in Python, bash or JavaScript",
            shown.text, language->shown);
    *ret_lang = language->lang;
    return 0;
}

int code_language(const char *name, const char *text, size_t len, const char **ret_lang,
                  struct err *err)
{
    const struct language *language = language_of_text(text, len);

    if (name) {
        language = language_of_name(name);
        if (!language)
            return err_set(err, EINVAL,
                           "\"lang\": \"%s\" is no language that is known; code is python, "
                           "bash or node",
                           names_shown(name).text);
    } else if (!language) {
        language = language_of_name("python");
    }
    return code_check_language(language, "the code", ret_lang, err);
}

/* Entries in the order of their names: SKILL.md, then the script. */
static int write_tar(const char *script, const char *text, size_t len, struct buf *out)
{
    static const char trailer[TAR_TRAILER];
    int r = tar_put_file(out, "SKILL.md", SKILL_MD, sizeof(SKILL_MD) - 1);

    if (r < 0)
        return r;
    r = tar_put_file(out, script, text, len);
    return r < 0 ? r : buf_append(out, trailer, sizeof(trailer));
}

static int keep_tar(const char *lang, const char *text, size_t len, int tar_fd,
                    char ret_digest[SHA256_HEX_SIZE])
{
    _cleanup_buf_ struct buf tar = buf_init(CODE_BYTES_MAX + CODE_TAR_EXTRA);
    bool is_module = strcmp(lang, "node") == 0 && is_es_module(text, len);
    int r = write_tar(is_module ? "main.mjs" : script_of(lang), text, len, &tar);

    if (r < 0)
        return r;
    r = sha256_of(tar.data, tar.len, ret_digest);
    return r < 0 ? r : fd_write_full(tar_fd, tar.data, tar.len);
}

int code_make_skill(const char *lang, const char *text, size_t len, int tar_fd,
                    struct skill_archive *ret_archive, struct skill *ret_skill, struct err *err)
{
    char digest[SHA256_HEX_SIZE];
    int r;

    if (len > CODE_BYTES_MAX)
        return err_set(err, EFBIG, "the code is larger than %u KiB", CODE_BYTES_MAX / 1024);
    r = keep_tar(lang, text, len, tar_fd, digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot keep the code");
    return skill_archive_reload(tar_fd, digest, ret_archive, ret_skill, err);
}
