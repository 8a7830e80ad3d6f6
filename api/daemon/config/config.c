/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config.h"

#include "api/daemon/config/config_value.h"
#include "api/daemon/terms/limits.h"
#include "api/daemon/terms/tenant.h"
#include "base/fd.h"
#include "base/log.h"

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
#define DAYS         86400000ull
#define FILE_MAX     (256u * 1024u)

struct key {
    const char *name; /* at most one dot */
    enum config_type type;
    size_t offset; /* in struct config */
    uint64_t min;
    uint64_t max;
    const char *initial;
    bool live;
};

#define AT(member) offsetof(struct config, member)

static const struct key keys[] = {
    {"socket.path", CONFIG_TEXT, AT(socket_path), 0, 0, "", false},
    {"socket.mode", CONFIG_MODE, AT(socket_mode), 0, 0777, "0660", false},
    {"listen.address", CONFIG_ADDRESS, AT(listen_address), 0, 0, "", false},
    {"listen.public_url", CONFIG_URL, AT(public_url), 0, 0, "", false},
    {"data", CONFIG_TEXT, AT(data_path), 0, 0, "", false},
    {"share", CONFIG_TEXT, AT(share_path), 0, 0, "", false},
    {"vmm", CONFIG_TEXT, AT(vmm_path), 0, 0, "", false},
    {"limits.max_running", CONFIG_COUNT, AT(max_running), 1, 256, "2", false},
    {"limits.max_queued", CONFIG_COUNT, AT(max_queued), 1, 100000, "64", true},
    {"limits.connections", CONFIG_COUNT, AT(max_connections), 1, 65536, "1100", false},
    {"limits.archive_bytes", CONFIG_BYTES, AT(archive_bytes), LIMIT_MIB, 512 * LIMIT_MIB,
     "50MiB", false},
    {"limits.archive_entries", CONFIG_COUNT, AT(archive_entries), 1, 50000, "500", false},
    {"machines.reuse", CONFIG_REUSE, AT(machines.reuse), TENANT_REUSE_NEVER,
     TENANT_REUSE_TENANT, "skill", false},
    {"machines.max_uses", CONFIG_COUNT, AT(machines.max_uses), 1, 1000000, "1000", true},
    {"machines.parked", CONFIG_COUNT, AT(machines.parked), 0, 256, "8", true},
    {"machines.memory", CONFIG_BYTES, AT(machines.memory_bytes), 0, 1ull << 50, "512MiB", true},
    {"machines.idle", CONFIG_DURATION, AT(machines.idle_ms), 1000, DAYS, "5m", true},
    {"snapshots.scope", CONFIG_SCOPE, AT(snapshots.scope), 0, 1, "shared", false},
    {"snapshots.renew", CONFIG_DURATION, AT(snapshots.renew_ms), 0, 3650 * DAYS, "6h", true},
    {"snapshots.max_uses", CONFIG_COUNT, AT(snapshots.max_uses), 0, 1000000000, "0", true},
    {"snapshots.kept", CONFIG_COUNT, AT(snapshots.kept), 0, 64, "16", true},
    {"snapshots.kept_bytes", CONFIG_BYTES, AT(snapshots.kept_bytes), 0, 1ull << 50, "2GiB",
     true},
    {"retention.executions_age", CONFIG_DURATION, AT(retention.executions_age_ms), 0,
     3650 * DAYS, "30d", true},
    {"retention.executions_bytes", CONFIG_BYTES, AT(retention.executions_bytes), 0, 1ull << 50,
     "10GiB", true},
    {"retention.files_age", CONFIG_DURATION, AT(retention.files_age_ms), 0, 3650 * DAYS, "7d",
     true},
    {"retention.interval", CONFIG_DURATION, AT(retention.interval_ms), 100, DAYS, "1m", true},
    {"watermarks.disk_free", CONFIG_AMOUNT, AT(watermarks.disk_free), 0, 0, "256MiB", true},
    {"watermarks.memory_free", CONFIG_AMOUNT, AT(watermarks.memory_free), 0, 0, "64MiB", true},
    {"stop_timeout", CONFIG_DURATION, AT(stop_timeout_ms), 0, 3600000, "10s", true},
    {"grace", CONFIG_DURATION, AT(grace_ms), 1000, 600000, "5s", false},
    {"log.level", CONFIG_LEVEL, AT(log_level), 0, LOG_LEVEL_DEBUG, "info", true},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

/* What others read under the same prefix: the command line and the tests. */
static const char *const not_ours[] = {"SOCKET", "SERVER", "API_KEY",
                                       "HOST",   "CONFIG", "SOFT_COUNTING"};

static void *place(struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

static const void *look(const struct config *config, const struct key *key)
{
    return (const char *)config + key->offset;
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

void config_finish(struct config *config)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (config_type_is_text(keys[i].type))
            free(*(char **)place(config, &keys[i]));
    }
    *config = (struct config){0};
}

int config_set(struct config *config, const char *name, const char *text, const char *origin,
               struct err *err)
{
    const struct key *key = find_key(name);
    char allowed[128];
    int r;

    if (!key)
        return err_set(err, EINVAL, "%s: there is no key %.64s", origin, name);
    r = config_value_parse(key->type, key->min, key->max, text, place(config, key));
    if (r == -EINVAL) {
        config_value_allowed(key->type, key->min, key->max, allowed, sizeof(allowed));
        return err_set(err, EINVAL, "%s: %s does not take \"%.64s\": it takes %s", origin, name,
                       text, allowed);
    }
    return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int config_defaults(struct config *ret, struct err *err)
{
    struct config config = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < N_KEYS; i++)
        r = config_set(&config, keys[i].name, keys[i].initial, "defaults", err);
    if (r < 0)
        config_finish(&config);
    else
        *ret = config;
    return r;
}

static int read_file(struct config *config, const char *path, struct err *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text;
    ssize_t n;
    int r;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", path);
    text = malloc(FILE_MAX + 1);
    if (!text)
        return err_set(err, ENOMEM, "out of memory");
    n = fd_read_full(fd, text, FILE_MAX + 1);
    if (n < 0)
        r = err_set_errno(err, (int)-n, "cannot read %s", path);
    else if (n > FILE_MAX)
        r = err_set(err, EFBIG, "%s is larger than %u KiB", path, FILE_MAX / 1024);
    else
        r = config_parse(config, text, (size_t)n, path, err);
    free(text);
    return r;
}

/* "limits.max_running" as "LIMITS_MAX_RUNNING". */
static void variable_of(const struct key *key, char name[ENV_NAME_MAX])
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
    for (size_t i = 0; i < N_KEYS; i++) {
        variable_of(&keys[i], known);
        if (strlen(known) != len || strncmp(known, name, len) != 0)
            continue;
        (void)snprintf(origin, sizeof(origin), ENV_PREFIX "%s", known);
        return config_set(config, keys[i].name, name + len + 1, origin, err);
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
    size_t section = 0; /* the length of the section's name that was written last */
    const char *last = "";
    int r = 0;

    for (size_t i = 0; r == 0 && i < N_KEYS; i++) {
        const char *name = keys[i].name;
        const char *dot = strchr(name, '.');
        size_t len = dot ? (size_t)(dot - name) : 0;

        if (dot && (len != section || strncmp(last, name, len) != 0))
            r = buf_printf(out, "%.*s:\n", (int)len, name);
        section = len;
        last = name;
        if (r == 0)
            r = buf_printf(out, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : name);
        if (r == 0)
            r = config_value_write(keys[i].type, look(config, &keys[i]), out);
        if (r == 0)
            r = buf_printf(out, "\n");
    }
    return r;
}

size_t config_n_keys(void)
{
    return N_KEYS;
}

struct config_key config_key_at(size_t index)
{
    return (struct config_key){
        .name = keys[index].name, .initial = keys[index].initial, .live = keys[index].live};
}

bool config_key_equal(const struct config *a, const struct config *b, size_t index)
{
    return config_value_equal(keys[index].type, look(a, &keys[index]), look(b, &keys[index]));
}

void config_key_adopt(struct config *config, const struct config *from, size_t index)
{
    const struct key *key = &keys[index];
    size_t size = key->type == CONFIG_AMOUNT ? sizeof(struct config_amount) : sizeof(uint64_t);

    /* A text has an owner, and none is live. */
    if (key->live && !config_type_is_text(key->type))
        memcpy(place(config, key), look(from, key), size);
}
