/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: asks the daemon inside for GET /health again and again and tells when it has
 * been silent for too long. It only observes; killing is the supervisor's.
 */
#ifndef SKILLVM_API_HOST_WATCH_H
#define SKILLVM_API_HOST_WATCH_H

#include "api/host/dial.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Pause between two answered questions. TCG can lose an interrupt when AMD-V is in use (its
 * helpers change the set of pending ones without a lock); the network card's interrupt for the
 * next question delivers both.
 */
#define WATCH_INTERVAL_MS 1000u
/* Silence that ends a host: emulation is slow and its one processor may be busy. */
#define WATCH_SILENCE_MS 60000u
/* The same before the first answer: includes making the data disk's file system. */
#define WATCH_BOOT_MS 180000u

enum watch_result { WATCH_WAITING, WATCH_ANSWERED, WATCH_EXPIRED };

struct watch {
    bool on;
    bool booted; /* answered once */
    struct dial dial;
    int fd;             /* a probe that got through to the daemon, -1: none */
    bool setting_clock; /* what dial is for: the clock, not a question */
    uint64_t probe_deadline_ns;
    uint64_t next_ns;       /* when to ask again */
    uint64_t next_clock_ns; /* when to set the clock again */
    uint32_t silence_ms;
    uint64_t heard_ns; /* the last answer, or the boot */
    char answer[16];
    uint32_t answer_len;
};

#define WATCH_NONE ((struct watch){.dial = {.fd = -1}, .fd = -1})

/* Begins for a host that starts now. silence_ms replaces WATCH_SILENCE_MS unless 0. */
void watch_boot(struct watch *w, uint32_t silence_ms, uint64_t now_ns);

/* The entry for poll(2). */
struct pollfd watch_poll(const struct watch *w);
/* Milliseconds until watch_run has something to do by itself. */
int watch_timeout_ms(const struct watch *w);

/* Goes on; to be called after every poll(2). */
enum watch_result watch_run(struct watch *w, uint16_t port, const uint8_t *token,
                            uint64_t now_ns);

/* The silence in milliseconds that expires it now. */
uint32_t watch_patience_ms(const struct watch *w);

/* The whole machine stood still for gap_ns: that does not count as silence. */
void watch_excuse(struct watch *w, uint64_t gap_ns);

/* Stops; safe on one that never began. */
void watch_finish(struct watch *w);

#endif
