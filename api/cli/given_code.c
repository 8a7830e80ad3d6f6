/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/given_code.h"

#include "api/cli/verbs.h"
#include "api/skill/code.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* what: where it comes from, for a message. */
static int read_all(int fd, const char *what, struct buf *out, struct err *err)
{
    int r = buf_reserve(out, CODE_BYTES_MAX + 1);
    ssize_t n = r < 0 ? 0 : fd_read_full(fd, out->data, CODE_BYTES_MAX + 1);

    if (r < 0)
        return err_no_memory(err);
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read %s", what);
    if (n > (ssize_t)CODE_BYTES_MAX)
        return err_set(err, EFBIG, "%s: code has up to %u KiB; give data with --file", what,
                       CODE_BYTES_MAX / 1024);
    out->len = (size_t)n;
    return 0;
}

static int add_text(struct buf *text, const char *what, const char *lang, cJSON *request,
                    struct err *err)
{
    if (memchr(text->data, '\0', text->len) || !utf8_valid(text->data, text->len))
        return err_set(err, EINVAL, "%s: code is text in UTF-8", what);
    if (!buf_cstr(text) || !cJSON_AddStringToObject(request, "code", buf_cstr(text)) ||
        !verbs_add_text(request, "lang", lang))
        return err_no_memory(err);
    return 0;
}

int run_code_add(const char *code, const char *lang, cJSON *request, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(CODE_BYTES_MAX + 2);
    int r;

    if (strcmp(code, "-") == 0)
        r = read_all(STDIN_FILENO, "standard input", &text, err);
    else if (buf_append(&text, code, strlen(code)) < 0)
        r = err_set(err, EFBIG, "--code has up to %u KiB", CODE_BYTES_MAX / 1024);
    else
        r = 0;
    return r < 0 ? r : add_text(&text, "--code", lang, request, err);
}

int run_code_add_file(const char *path, const char *lang, cJSON *request, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(CODE_BYTES_MAX + 2);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const struct language *language = lang ? language_of_name(lang) : language_of_path(path);
    struct stat st;
    char head[2];
    int r;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (!language && (fd_pread_full(fd, head, 2, 0) != 2 || memcmp(head, "#!", 2) != 0)))
        return 0;
    r = read_all(fd, path, &text, err);
    if (r < 0)
        return r;
    if (!language)
        language = language_of_text((const char *)text.data, text.len);
    r = code_check_language(language, path, &lang, err);
    if (r < 0)
        return r;
    r = add_text(&text, path, lang, request, err);
    return r < 0 ? r : 1;
}
