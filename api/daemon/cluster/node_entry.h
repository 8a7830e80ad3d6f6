/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node says of itself, as JSON under its name in the bucket of nodes. Everything that
 * comes from there is a stranger's: a broken or hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_NODE_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_NODE_ENTRY_H

#include "api/daemon/terms/fleet_words.h"
#include "api/json/json_write.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_ENTRY_SCHEMA    1u
#define NODE_ENTRY_BYTES_MAX 16384u
#define NODE_INSTANCE_SIZE   33u /* 128 bits, hexadecimal, with the NUL */
#define NODE_VERSION_SIZE    33u
#define NODE_STATE_SIZE      17u
#define NODE_CPU_SIZE        65u
#define NODE_IMAGE_SIZE      65u
#define NODE_IMAGES_MAX      64u
#define NODE_SNAPSHOTS_MAX   64u

struct node_label {
    char key[FLEET_LABEL_SIZE];
    char value[FLEET_LABEL_SIZE];
};

/* Names and words are of letters, digits, '-', '_', '.', '+' and '~'. */
struct node_entry {
    char node[FLEET_NODE_SIZE];
    char instance[NODE_INSTANCE_SIZE]; /* of the process, which nobody else has */
    char state[NODE_STATE_SIZE];       /* "joined", or why it is not, as it says itself */
    char version[NODE_VERSION_SIZE];   /* of skillvm */
    char cpu[NODE_CPU_SIZE];           /* vendor-family-model-stepping, or "" */
    uint64_t started_ns;               /* realtime */
    uint64_t memory_bytes;
    uint32_t slots; /* executions that may run at once */
    bool kvm;       /* it may use /dev/kvm */
    char images[NODE_IMAGES_MAX][NODE_IMAGE_SIZE];
    size_t n_images;
    struct node_label labels[FLEET_LABELS_MAX];
    size_t n_labels;
    uint64_t
        snapshots[NODE_SNAPSHOTS_MAX]; /* that are there, but the common plain one: hashes */
    size_t n_snapshots;
};

/* Why an entry is not taken. */
enum node_refusal {
    NODE_MALFORMED,  /* no JSON, or not what an entry has */
    NODE_NEWER,      /* of a schema that this version does not know */
    NODE_WRONG_NAME, /* it does not name the key that it is under */
    NODE_TOO_LARGE,
    NODE_TOO_MANY, /* there is no room for another node */
};
#define NODE_REFUSALS (NODE_TOO_MANY + 1)
extern const char *const node_refusal_names[NODE_REFUSALS];

/*
 * Reads the entry under a key. 0, or -EINVAL with *ret_why; *ret is untouched then. Members
 * that this version does not know are left alone: a later one may add some.
 */
int node_entry_parse(const char *key, const char *data, size_t len, struct node_entry *ret,
                     enum node_refusal *ret_why);
/* The members of an entry, inside of an object. */
void node_entry_write_members(struct json_writer *w, const struct node_entry *entry);
/* The whole entry, as it is put under its key. 0, or -E2BIG or -ENOMEM. */
int node_entry_write(const struct node_entry *entry, struct buf *ret);

#endif
