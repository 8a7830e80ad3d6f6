/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config.h"

#include "api/daemon/config/config_keys.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENV_PREFIX   "SKILLVM_"
#define ENV_NAME_MAX 64u
#define FILE_MAX     (256u * 1024u)

/* What others read under the same prefix: the command line, the tests, and serve.c. */
static const char *const not_ours[] = {"SOCKET", "SERVER",        "API_KEY",    "HOST",
                                       "CONFIG", "SOFT_COUNTING", "SHARE_IMAGE"};

void config_finish(struct config *config)
{
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (config_type_is_text(key->type))
            free(*(char **)config_key_place(key, config));
    }
    *config = (struct config){0};
}

int config_set(struct config *config, const char *name, const char *text, const char *origin,
               struct err *err)
{
    const struct config_key *key = config_key_find(name);
    char allowed[128];
    int r;

    if (!key)
        return err_set(err, EINVAL, "%s: there is no key %.64s", origin, name);
    r = config_value_parse(key->type, key->min, key->max, text, config_key_place(key, config));
    if (r == -EINVAL) {
        config_value_allowed(key->type, key->min, key->max, allowed, sizeof(allowed));
        return err_set(err, EINVAL, "%s: %s does not take \"%.64s\": it takes %s", origin, name,
                       text, allowed);
    }
    return r < 0 ? err_no_memory(err) : 0;
}

int config_defaults(struct config *ret, struct err *err)
{
    struct config config = {0};
    int r = 0;

    for (const struct config_key *key = config_keys; r == 0 && key->name; key++)
        r = config_set(&config, key->name, key->initial, "defaults", err);
    if (r < 0)
        config_finish(&config);
    else
        *ret = config;
    return r;
}

static int read_file(struct config *config, const char *path, struct err *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    ssize_t n;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", path);
    text = malloc(FILE_MAX + 1);
    if (!text)
        return err_no_memory(err);
    n = fd_read_full(fd, text, FILE_MAX + 1);
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read %s", path);
    if (n > FILE_MAX)
        return err_set(err, EFBIG, "%s is larger than %u KiB", path, FILE_MAX / 1024);
    return config_parse(config, text, (size_t)n, path, err);
}

/* "limits.max_running" as "LIMITS_MAX_RUNNING". */
static void variable_of(const struct config_key *key, char name[ENV_NAME_MAX])
{
    size_t n = 0;

    for (const char *c = key->name; *c && n + 1 < ENV_NAME_MAX; c++)
        name[n++] = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    name[n] = '\0';
}

static bool is_not_ours(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(not_ours) / sizeof(not_ours[0]); i++) {
        if (strlen(not_ours[i]) == len && strncmp(not_ours[i], name, len) == 0)
            return true;
    }
    return strncmp(name, "TEST_", 5) == 0;
}

/* One "SKILLVM_NAME=text". An empty text is the same as no variable. */
static int take_variable(struct config *config, const char *entry, config_warn *warn, void *ctx,
                         struct err *err)
{
    const char *name = entry + strlen(ENV_PREFIX);
    size_t len = strcspn(name, "=");
    char known[ENV_NAME_MAX], origin[ENV_NAME_MAX + 16], warning[256];

    if (name[len] == '\0' || name[len + 1] == '\0')
        return 0;
    for (const struct config_key *key = config_keys; key->name; key++) {
        variable_of(key, known);
        if (strlen(known) != len || strncmp(known, name, len) != 0)
            continue;
        (void)snprintf(origin, sizeof(origin), ENV_PREFIX "%s", known);
        return config_set(config, key->name, name + len + 1, origin, err);
    }
    if (!is_not_ours(name, len)) {
        (void)snprintf(warning, sizeof(warning),
                       "the variable " ENV_PREFIX "%.*s is no setting and was ignored",
                       (int)(len < 64 ? len : 64), name);
        warn(ctx, warning);
    }
    return 0;
}

int config_read(const struct config_sources *sources, config_warn *warn, void *ctx,
                struct config *ret, struct err *err)
{
    struct config config = {0};
    int r = config_defaults(&config, err);

    if (r == 0 && sources->file)
        r = read_file(&config, sources->file, err);
    for (const char *const *e = sources->environment; r == 0 && e && *e; e++) {
        if (strncmp(*e, ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
            r = take_variable(&config, *e, warn, ctx, err);
    }
    for (size_t i = 0; r == 0 && i < sources->n_overrides; i++) {
        const struct config_override *o = &sources->overrides[i];

        r = config_set(&config, o->key, o->text, o->origin, err);
    }
    if (r < 0)
        config_finish(&config);
    else
        *ret = config;
    return r;
}

int config_write(const struct config *config, struct buf *out)
{
    for (const struct config_key *key = config_keys; key->name; key++) {
        const struct config_section *section = config_section_begun(key);
        size_t len = config_key_section(key);

        if (section)
            (void)buf_printf(out, "%s:\n", section->name);
        (void)buf_printf(out, "%s%s: ", len > 0 ? "  " : "", key->name + len + (len > 0));
        (void)config_value_write(key->type, config_key_look(key, config), out);
        (void)buf_printf(out, "\n");
    }
    return out->error;
}
