/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's settings: one table of keys, filled from defaults, a YAML file, the environment
 * and the command line, the later over the earlier. Reading never changes anything but the
 * struct: who puts a setting to use is told by its owner.
 */
#ifndef SKILLVM_API_DAEMON_CONFIG_CONFIG_H
#define SKILLVM_API_DAEMON_CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of bytes, or a share of a whole whose size only its user knows. */
struct config_amount {
    uint64_t bytes;   /* where percent is 0 */
    unsigned percent; /* 0..100 */
};

/* How long things are kept; 0: no limit. */
struct config_retention {
    uint64_t executions_age_ms;
    uint64_t executions_bytes; /* of artifacts and stored results together */
    uint64_t files_age_ms;
    uint64_t sessions_age_ms; /* since they were used */
    uint64_t interval_ms;     /* between two looks at all of this */
};

/* Below these no execution is accepted; 0: no such bound. */
struct config_watermarks {
    struct config_amount disk_free;
    struct config_amount memory_free;
};

/* Machines that wait for executions, and who may have them. */
struct config_machines {
    uint64_t reuse;        /* an enum tenant_reuse, and never UNSET */
    uint64_t max_uses;     /* jobs that one machine runs */
    uint64_t parked;       /* machines that wait; 0: none ever does */
    uint64_t memory_bytes; /* of their own that they may have together */
    uint64_t idle_ms;      /* after which one that waits goes */
};

/* The snapshots that executions begin from. */
struct config_snapshots {
    uint64_t scope;      /* 0: tenants share them; 1: each has its own */
    uint64_t renew_ms;   /* when one is made anew; 0: never for this reason */
    uint64_t max_uses;   /* the same; 0: never */
    uint64_t kept;       /* beside the common plain one */
    uint64_t kept_bytes; /* of disk that those may have together */
};

/* Connections of skills. Texts are owned. */
struct config_network {
    char *policy;        /* of who has none of its own, as of tenant_network_clean */
    char *allow_private; /* names with a given address */
    char *dns;           /* a server in place of the system's; "": those */
    uint64_t connections;
    uint64_t bytes;
};

/* The cluster that the daemon is a node of. Texts are owned. */
struct config_cluster {
    char *servers;     /* as of fleet_servers_check; "": none, and nothing else here counts */
    char *node;        /* "": of the host's name */
    uint64_t replicas; /* 0: 1; 1: 3 */
    char *labels;
    char *credentials; /* files */
    char *tls_ca;
    char *tls_cert;
    char *tls_key;
    uint64_t keys_timeout_ms;
    uint64_t cache_bytes; /* 0: no limit */
    uint64_t objects_bytes;
    uint64_t artifacts_bytes;
};

/* Texts are owned and never NULL; "" means not set. */
struct config {
    char *socket_path;
    uint64_t socket_mode;
    char *listen_address;
    char *public_url;
    char *data_path;
    char *share_path;
    char *images_path;
    char *vmm_path;
    char *jail_path;
    uint64_t isolation; /* 0: best-effort; 1: strict */
    char *wheelhouse;
    uint64_t max_running;
    uint64_t max_queued;
    uint64_t max_connections;
    uint64_t archive_bytes;
    uint64_t expanded_bytes;
    uint64_t archive_entries;
    uint64_t packages_bytes;
    uint64_t packages_entries;
    struct config_machines machines;
    struct config_snapshots snapshots;
    struct config_network network;
    struct config_cluster cluster;
    struct config_retention retention;
    struct config_watermarks watermarks;
    uint64_t stop_timeout_ms;
    uint64_t grace_ms;
    uint64_t log_level; /* an enum log_level */
};

/* A key that was given outside the file: "limits.max_running", "4", "--max-running". */
struct config_override {
    const char *key;
    const char *text;
    const char *origin; /* as a person knows it, for messages */
};

/* Where settings come from. Borrowed: it must live as long as settings are read anew. */
struct config_sources {
    const char *file;               /* NULL: none */
    const char *const *environment; /* "SKILLVM_LIMITS_MAX_RUNNING=4"; ended by NULL, or NULL */
    const struct config_override *overrides;
    size_t n_overrides;
};

/* Told of what deserves a warning and is no error. */
typedef void config_warn(void *ctx, const char *text);

/*
 * Reads all sources. 0 with *ret, which the caller finishes; -EINVAL for a value or a key that
 * is not allowed, with its origin (FILE:LINE, the variable or the option) and what is allowed;
 * -errno when the file cannot be read; -ENOMEM. *ret is untouched on failure.
 */
int config_read(const struct config_sources *sources, config_warn *warn, void *ctx,
                struct config *ret, struct err *err);
/* Frees the texts. Safe on a zeroed one. */
void config_finish(struct config *config);

/* The next two are the steps of config_read, for a config of config_defaults. */
int config_defaults(struct config *ret, struct err *err);
/* Sets one key from text. 0; -EINVAL with the origin, the key and what is allowed; -ENOMEM. */
int config_set(struct config *config, const char *key, const char *text, const char *origin,
               struct err *err);
/* Sets what a YAML text has. name is for messages. Errors as of config_read. */
int config_parse(struct config *config, const char *text, size_t len, const char *name,
                 struct err *err);

/* Appends the settings as a file that config_parse takes. 0, -E2BIG or -ENOMEM. */
int config_write(const struct config *config, struct buf *out);

/* The bytes an amount stands for, of a whole of so many bytes. */
uint64_t config_amount_of(const struct config_amount *amount, uint64_t whole_bytes);

#endif
