/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/profile.h"

#include "base/buf.h"
#include "base/dotted.h"
#include "base/fd.h"
#include "guest-init/proto.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PROFILE_NAME_SIZE - 1 <= PROTO_WARM_MAX, "a name is the payload of WARM");
_Static_assert(PROFILE_NAME_SIZE > DOTTED_NAME_MAX, "one module fits");

static int take_lines(char *text, size_t len, struct skill_strings *list, struct err *err)
{
    for (size_t line = 1; len > 0; line++) {
        char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;

        if (!end || !dotted_is_name(text, n))
            return err_set(err, EINVAL, "line %zu is no module's name", line);
        if (line > PROFILE_LIST_MAX)
            return err_set(err, EFBIG, "more than %u modules", PROFILE_LIST_MAX);
        *end = '\0';
        if (skill_strings_insert(list, text, PROFILE_LIST_MAX) < 0)
            return err_no_memory(err);
        text += n + 1;
        len -= n + 1;
    }
    return 0;
}

int profile_list_read(int fd, struct skill_strings *ret, struct err *err)
{
    char text[PROFILE_LIST_BYTES_MAX + 1];
    struct skill_strings list = {0};
    ssize_t len = fd_pread_full(fd, text, sizeof(text), 0);
    int r;

    if (len < 0)
        return err_set_errno(err, (int)-len, "cannot read the list of modules");
    if (len == (ssize_t)sizeof(text))
        return err_set(err, EFBIG, "over %u bytes", PROFILE_LIST_BYTES_MAX);
    r = take_lines(text, (size_t)len, &list, err);
    if (r < 0) {
        skill_strings_finish(&list);
        return r;
    }
    *ret = list;
    return 0;
}

/* Importing a module imports the packages it is in. */
static bool is_imported(const struct skill_strings *imports, const char *module)
{
    size_t len = strlen(module);

    for (size_t i = 0; i < imports->len; i++) {
        const char *name = imports->items[i];

        if (strncmp(name, module, len) == 0 && (!name[len] || name[len] == '.'))
            return true;
    }
    return false;
}

void profile_make(const struct skill_strings *offered, const struct skill_strings *imports,
                  char ret_name[PROFILE_NAME_SIZE])
{
    char *at = ret_name;

    for (size_t i = 0; i < offered->len; i++) {
        const char *module = offered->items[i];
        size_t len = strlen(module), room = PROFILE_NAME_SIZE - 1 - (size_t)(at - ret_name);

        if (!is_imported(imports, module) || len + (at > ret_name) > room)
            continue;
        if (at > ret_name)
            *at++ = '+';
        memcpy(at, module, len);
        at += len;
    }
    *at = '\0';
}
