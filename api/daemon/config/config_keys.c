/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config_keys.h"

#include "api/daemon/terms/limits.h"
#include "api/daemon/terms/tenant.h"
#include "api/skill/archive.h"
#include "base/log.h"

#include <string.h>

#define DAYS 86400000ull

#define AT(member) offsetof(struct config, member)

const struct config_key config_keys[] = {
    {"socket.path", CONFIG_TEXT, AT(socket_path), 0, 0, "", false, "--socket", "PATH",
     "the unix socket to listen on; `\"\"` for none"},
    {"socket.mode", CONFIG_MODE, AT(socket_mode), 0, 0777, "0660", false, "--socket-mode",
     "MODE", "its octal permissions"},
    {"listen.address", CONFIG_ADDRESS, AT(listen_address), 0, 0, "", false, "--listen",
     "ADDRESS",
     "a TCP address, `127.0.0.1:8080` or `[::1]:8080`, for callers with a key; `\"\"` for "
     "none. It speaks plain HTTP: a proxy with TLS belongs before it"},
    {"listen.public_url", CONFIG_URL, AT(public_url), 0, 0, "", false, NULL, NULL,
     "what callers put before a path, `https://skills.example.org` behind a proxy: `files_url` "
     "of a result over TCP begins with it; `\"\"` for `http://` and the `Host` header"},
    {"data", CONFIG_TEXT, AT(data_path), 0, 0, "", false, "--data", "DIR",
     "the folder of skills, executions, artifacts and snapshots, which one daemon has at a "
     "time; it must be set"},
    {"share", CONFIG_TEXT, AT(share_path), 0, 0, "", false, "--share", "DIR",
     "the folder of guest kernel and images; `\"\"` for `../share/skillvm` beside the program"},
    {"images", CONFIG_TEXT, AT(images_path), 0, 0, "", false, "--images", "DIR",
     "the folder of images that `skillvm image` made, beside those in the share folder; `\"\"` "
     "for `images` in the data folder"},
    {"vmm", CONFIG_TEXT, AT(vmm_path), 0, 0, "", false, "--vmm", "PATH",
     "the program that is one machine; `\"\"` for `skillvm-vmm` beside the program"},
    {"jail", CONFIG_TEXT, AT(jail_path), 0, 0, "", false, "--jail", "PATH",
     "the program that starts machines; `\"\"` for `skillvm-jail` beside the program"},
    {"isolation", CONFIG_ISOLATION, AT(isolation), 0, 1, "best-effort", false, NULL, NULL,
     "what the daemon does where the host does not allow a layer of the machines' jail: "
     "`strict` "
     "does not start, `best-effort` warns and goes on without it"},
    {"wheelhouse", CONFIG_TEXT, AT(wheelhouse), 0, 0, "", false, NULL, NULL,
     "a folder of wheels that every skill may require packages of, beside its own; `\"\"` for "
     "none"},
    {"limits.max_running", CONFIG_COUNT, AT(max_running), 1, 256, "2", false, "--max-running",
     "N",
     "machines that run at the same time, each of them one busy processor and up to 1 GiB"},
    {"limits.max_queued", CONFIG_COUNT, AT(max_queued), 1, 100000, "64", true, "--max-queued",
     "N", "executions that may wait; more are told 429"},
    {"limits.connections", CONFIG_COUNT, AT(max_connections), 1, 65536, "1100", false, NULL,
     NULL, "connections of all callers together"},
    {"limits.archive_bytes", CONFIG_BYTES, AT(archive_bytes), LIMIT_MIB, ARCHIVE_BYTES_MOST,
     "288MiB", false, NULL, NULL, "how large a skill's archive may be as it comes"},
    {"limits.expanded_bytes", CONFIG_BYTES, AT(expanded_bytes), LIMIT_MIB, ARCHIVE_BYTES_MOST,
     "256MiB", false, NULL, NULL, "how large what is in a skill's archive may be, unpacked"},
    {"limits.archive_entries", CONFIG_COUNT, AT(archive_entries), 1, ARCHIVE_ENTRIES_MOST,
     "20000", false, NULL, NULL, "files, folders and links of a skill"},
    {"limits.packages_bytes", CONFIG_BYTES, AT(packages_bytes), LIMIT_MIB, 512 * LIMIT_MIB,
     "256MiB", false, NULL, NULL,
     "how large what a skill's wheels hold may be; it is in the memory of the executions too"},
    {"limits.packages_entries", CONFIG_COUNT, AT(packages_entries), 1, 100000, "20000", false,
     NULL, NULL, "files and folders of a skill's wheels"},
    {"machines.reuse", CONFIG_REUSE, AT(machines.reuse), TENANT_REUSE_NEVER,
     TENANT_REUSE_TENANT, "skill", false, NULL, NULL,
     "whose later executions a machine may run, each from the snapshot again: `skill` for the "
     "same skill's (by content) of the same tenant, `tenant` for any of the same tenant, "
     "`never` for one machine to each execution; a tenant's own limit can be narrower"},
    {"machines.max_uses", CONFIG_COUNT, AT(machines.max_uses), 1, 1000000, "1000", true, NULL,
     NULL, "executions that one machine runs"},
    {"machines.parked", CONFIG_COUNT, AT(machines.parked), 0, 256, "8", true, NULL, NULL,
     "machines that wait for executions, fresh and used ones together; with 0 every execution "
     "starts a machine and ends it"},
    {"machines.memory", CONFIG_BYTES, AT(machines.memory_bytes), 0, 1ull << 50, "512MiB", true,
     NULL, NULL, "memory of their own that those may have together"},
    {"machines.idle", CONFIG_DURATION, AT(machines.idle_ms), 1000, DAYS, "5m", true, NULL, NULL,
     "how long one may wait; a fresh one always does"},
    {"snapshots.scope", CONFIG_SCOPE, AT(snapshots.scope), 0, 1, "shared", false, NULL, NULL,
     "who begins from one snapshot: `shared` for all tenants; with `tenant` each has its own, "
     "for which its first execution waits, and which counts for `snapshots.kept`"},
    {"snapshots.renew", CONFIG_DURATION, AT(snapshots.renew_ms), 0, 3650 * DAYS, "6h", true,
     NULL, NULL,
     "how old the snapshot that executions begin from may be before another is made in the "
     "background; one that lies on disk when the daemon starts has its age; 0 for no limit"},
    {"snapshots.max_uses", CONFIG_COUNT, AT(snapshots.max_uses), 0, 1000000000, "0", true, NULL,
     NULL, "the same for executions that began from it since it came into use; 0 for no limit"},
    {"snapshots.kept", CONFIG_COUNT, AT(snapshots.kept), 0, 64, "16", true, NULL, NULL,
     "snapshots beside the common plain one, of import profiles, packages and tenants; past "
     "that the one that nobody asked for the longest gives way, and 0 makes none"},
    {"snapshots.kept_bytes", CONFIG_BYTES, AT(snapshots.kept_bytes), 0, 1ull << 50, "2GiB",
     true, NULL, NULL, "what those may take on disk together"},
    {"network.policy", CONFIG_HOSTS, AT(network.policy), 0, 0, "off", false, NULL, NULL,
     "which hosts the skills of a tenant that has no `network` of its own may reach, the "
     "operator's too: `off`, `declared` for all that they declare, or patterns such as "
     "`api.example.com *.example.org:8443`"},
    {"network.allow_private", CONFIG_NAMES, AT(network.allow_private), 0, 0, "", false, NULL,
     NULL,
     "`NAME=ADDRESS` with spaces between: these names have these addresses, also private ones, "
     "and are not looked up. For tests, and for inner services that skills may reach"},
    {"network.dns", CONFIG_ADDRESS, AT(network.dns), 0, 0, "", false, NULL, NULL,
     "a DNS server, `192.0.2.1:53`, in place of the system's"},
    {"network.connections", CONFIG_COUNT, AT(network.connections), 1, 1000000, "1000", false,
     NULL, NULL, "connections that one execution may begin"},
    {"network.bytes", CONFIG_BYTES, AT(network.bytes), 1, 1ull << 50, "1GiB", false, NULL, NULL,
     "what all of them together may carry, in both directions"},
    {"cluster.servers", CONFIG_SERVERS, AT(cluster.servers), 0, 0, "", false, NULL, NULL,
     "the NATS servers, `nats://HOST:PORT` or `tls://HOST:PORT` with spaces between; `\"\"` "
     "for a daemon on its own"},
    {"cluster.node", CONFIG_NODE, AT(cluster.node), 0, 0, "", false, NULL, NULL,
     "what this node is called, which no other is; `\"\"` for the first part of the host's "
     "name"},
    {"cluster.replicas", CONFIG_REPLICAS, AT(cluster.replicas), 0, 1, "1", false, NULL, NULL,
     "how many servers hold what `skillvm cluster init` makes; with 3 one of them may be lost"},
    {"cluster.labels", CONFIG_LABELS, AT(cluster.labels), 0, 0, "", false, NULL, NULL,
     "what the others are told of this node, `rack=a7 disk=nvme`"},
    {"cluster.credentials", CONFIG_TEXT, AT(cluster.credentials), 0, 0, "", false, NULL, NULL,
     "a file of NATS credentials (a JWT and its seed); `\"\"` for none"},
    {"cluster.tls_ca", CONFIG_TEXT, AT(cluster.tls_ca), 0, 0, "", false, NULL, NULL,
     "a file of the authorities that the servers' certificates are of; `\"\"` for the "
     "system's"},
    {"cluster.tls_cert", CONFIG_TEXT, AT(cluster.tls_cert), 0, 0, "", false, NULL, NULL,
     "a file of this node's own certificate, for servers that want one; `\"\"` for none"},
    {"cluster.tls_key", CONFIG_TEXT, AT(cluster.tls_key), 0, 0, "", false, NULL, NULL,
     "the file of its key"},
    {"cluster.keys_timeout", CONFIG_DURATION, AT(cluster.keys_timeout_ms), 0, 30 * DAYS, "5m",
     false, NULL, NULL,
     "a node that is cut off for this long takes no keys until it is joined again; 9 s at "
     "least"},
    {"cluster.cache_bytes", CONFIG_BYTES, AT(cluster.cache_bytes), 0, 1ull << 50, "10GiB",
     false, NULL, NULL,
     "how much of what skills and files hold this node keeps; past that what nobody asked for "
     "the longest goes, where the servers have it; 0 for no limit"},
    {"cluster.objects_bytes", CONFIG_BYTES, AT(cluster.objects_bytes), 0, 1ull << 50, "10GiB",
     false, NULL, NULL,
     "how much skills and files may hold at the servers, in the bucket that `skillvm cluster "
     "init` makes, for which each server that has it sets so much aside; 0 for no limit"},
    {"cluster.artifacts_bytes", CONFIG_BYTES, AT(cluster.artifacts_bytes), 0, 1ull << 50,
     "4GiB", false, NULL, NULL,
     "the same of what executions leave, and of large results; past that the oldest go"},
    {"retention.executions_age", CONFIG_DURATION, AT(retention.executions_age_ms), 0,
     3650 * DAYS, "30d", true, NULL, NULL,
     "how long an ended execution is kept: result, logs, artifacts; 0 for ever"},
    {"retention.executions_bytes", CONFIG_BYTES, AT(retention.executions_bytes), 0, 1ull << 50,
     "10GiB", true, NULL, NULL,
     "how much results and artifacts may take together; the oldest go first; 0 for no limit"},
    {"retention.files_age", CONFIG_DURATION, AT(retention.files_age_ms), 0, 3650 * DAYS, "7d",
     true, NULL, NULL, "how long an uploaded input file is kept; 0 for ever"},
    {"retention.sessions_age", CONFIG_DURATION, AT(retention.sessions_age_ms), 0, 3650 * DAYS,
     "7d", true, NULL, NULL, "how long a session is kept that nobody uses; 0 for ever"},
    {"retention.interval", CONFIG_DURATION, AT(retention.interval_ms), 100, DAYS, "1m", true,
     NULL, NULL, "how often what is due is removed"},
    {"watermarks.disk_free", CONFIG_AMOUNT, AT(watermarks.disk_free), 0, 0, "256MiB", true,
     NULL, NULL, "free disk space in `data`"},
    {"watermarks.memory_free", CONFIG_AMOUNT, AT(watermarks.memory_free), 0, 0, "64MiB", true,
     NULL, NULL, "memory that the system can give"},
    {"stop_timeout", CONFIG_DURATION, AT(stop_timeout_ms), 0, 3600000, "10s", true,
     "--stop-timeout", "TIME",
     "how long executions may go on after SIGTERM; then they are cancelled"},
    {"grace", CONFIG_DURATION, AT(grace_ms), 1000, 600000, "5s", false, "--grace", "TIME",
     "how long a guest may be late before its machine is killed"},
    {"log.level", CONFIG_LEVEL, AT(log_level), 0, LOG_LEVEL_DEBUG, "info", true, "--log-level",
     "LEVEL", "what is worth a line of the log"},
    {.name = NULL},
};

const struct config_section config_sections[] = {
    {"socket", "The unix socket. root and the daemon's own user are the operator there; "
               "everybody else who can open it needs a key. A socket from systemd takes its "
               "place."},
    {"listen", "TCP, for callers with a key."},
    {"limits", "What all callers share."},
    {"machines",
     "Machines wait for executions, ready to begin. Fresh ones are for anybody; one that has "
     "run an execution is put back to its snapshot and may run another of the same owner."},
    {"snapshots",
     "Every execution begins from a snapshot of a booted guest. It is made anew in the "
     "background; the one before is used until then."},
    {"network",
     "Skills have no network. One that declares hosts gets connections to those that its "
     "tenant's policy permits, by name and through the daemon (docs/network.md)."},
    {"cluster", "Daemons of several machines that know each other, through NATS JetStream "
                "(docs/fleet.md)."},
    {"retention", "What is kept, and for how long."},
    {"watermarks",
     "With less than this, nothing new is accepted (503, Retry-After) and /ready says why. A "
     "size, or a percentage of the whole; 0 for no such bound."},
    {"log", "The log goes to standard error."},
    {.name = NULL},
};

const struct config_key *config_key_find(const char *name)
{
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

size_t config_key_section(const struct config_key *key)
{
    const char *dot = strchr(key->name, '.');

    return dot ? (size_t)(dot - key->name) : 0;
}

const struct config_section *config_section_find(const char *name, size_t len)
{
    const struct config_section *s = config_sections;

    while (s->name && (strlen(s->name) != len || strncmp(s->name, name, len) != 0))
        s++;
    return s->name ? s : NULL;
}

const struct config_section *config_section_begun(const struct config_key *key)
{
    size_t len = config_key_section(key);

    if (len == 0 || (key > config_keys && config_key_section(key - 1) == len &&
                     strncmp(key[-1].name, key->name, len) == 0))
        return NULL;
    return config_section_find(key->name, len);
}

void *config_key_place(const struct config_key *key, struct config *config)
{
    return (char *)config + key->offset;
}

const void *config_key_look(const struct config_key *key, const struct config *config)
{
    return (const char *)config + key->offset;
}

bool config_key_equal(const struct config_key *key, const struct config *a,
                      const struct config *b)
{
    const void *x = config_key_look(key, a), *y = config_key_look(key, b);
    const struct config_amount *amount = x, *other = y;

    if (config_type_is_text(key->type))
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    if (key->type == CONFIG_AMOUNT)
        return amount->bytes == other->bytes && amount->percent == other->percent;
    return *(const uint64_t *)x == *(const uint64_t *)y;
}

void config_key_adopt(const struct config_key *key, struct config *config,
                      const struct config *from)
{
    size_t size = key->type == CONFIG_AMOUNT ? sizeof(struct config_amount) : sizeof(uint64_t);

    /* A text has an owner, and none is live. */
    if (key->live && !config_type_is_text(key->type))
        memcpy(config_key_place(key, config), config_key_look(key, from), size);
}
