/* SPDX-License-Identifier: Apache-2.0 */
/* The guest behind the stand-in for the VMM: its frames, and what it does with a job. */
#ifndef SKILLVM_TESTS_UNIT_FAKE_GUEST_H
#define SKILLVM_TESTS_UNIT_FAKE_GUEST_H

#include "base/buf.h"
#include "vmm/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake {
    int pid; /* as the daemon knows it */
    int control_fd, vsock_fd, kernel_fd, image_fd, state_fd, memory_fd;
    int working_set_fd, record_fd;
    char mode[64];
    struct buf run_text; /* the RUN fields as JSON members */
    char behaviour[64];  /* FAKE */
    char payload[4096];  /* FAKE_DATA */
    bool is_probe;       /* it looks at the parser of a script */
    bool is_reusable;
    unsigned runs;      /* jobs so far, warm-ups too */
    char reset_how[64]; /* what becomes of the next RESET, and of what waits after it */
    int old_fd;         /* the stream of the run before, kept to say more on it, or -1 */
    struct buf skill;   /* its tar, then */
    uint64_t skill_bytes;
    uint64_t packages_bytes;
    uint32_t skill_crc;
    bool has_disk;
    struct vmm_command disk; /* how it came */
    int disk_fds[2];
    struct buf input;
    struct buf files_in; /* the tar stream */
    bool has_session;
    struct buf session; /* the tar stream */
};

void fake_die(const char *what);
/* Whether no machine of this image asked that before. */
bool fake_is_first(const struct fake *f);
void fake_event(const struct fake *f, enum vmm_event_type type, const char *message);
void fake_send_frame(const struct fake *f, uint8_t type, const void *data, size_t len);
void fake_send_text(const struct fake *f, uint8_t type, const char *text);
void fake_send_ready(const struct fake *f, uint32_t version);
/* One frame from the host; its payload is the caller's to free. */
uint8_t fake_receive_frame(const struct fake *f, uint8_t **ret, size_t *ret_len);
/* Takes everything the host sends before STARTED. */
void fake_take_injection(struct fake *f);
/* Does what the job says. It may not return. */
void fake_behave(struct fake *f);
/* Ends the skill, with nothing left of it. */
void fake_finish(const struct fake *f, uint32_t code, uint32_t sig, uint32_t flags);

#endif
