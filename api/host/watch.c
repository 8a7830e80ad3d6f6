/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog of a software host. Each question is a connection of its own, so one that hangs
 * cannot hide that the next would be answered.
 */
#include "api/host/watch.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define WATCH_PROBE_MS      15000u
#define WATCH_BOOT_PROBE_MS 2000u
#define WATCH_RETRY_MS      200u
#define WATCH_CLOCK_MS      60000u

static const char watch_question[] = "GET /health HTTP/1.1\r\nHost: skillvm\r\n"
                                     "Connection: close\r\n\r\n";
static const char watch_status[] = "HTTP/1.1 200";

void watch_boot(struct watch *w, uint32_t silence_ms, uint64_t now_ns)
{
    watch_finish(w);
    w->on = true;
    w->silence_ms = silence_ms ? silence_ms : WATCH_SILENCE_MS;
    w->heard_ns = now_ns;
    w->next_ns = now_ns + WATCH_RETRY_MS * NS_PER_MS;
    w->next_clock_ns = now_ns;
}

struct pollfd watch_poll(const struct watch *w)
{
    if (w->fd >= 0)
        return (struct pollfd){.fd = w->fd, .events = POLLIN};
    return dial_poll(&w->dial);
}

int watch_timeout_ms(const struct watch *w)
{
    uint64_t next_ns = w->next_ns;

    if (w->dial.fd >= 0)
        next_ns = w->dial.deadline_ns;
    if (w->fd >= 0)
        next_ns = w->probe_deadline_ns;
    return clock_timeout_ms(next_ns);
}

uint32_t watch_patience_ms(const struct watch *w)
{
    return w->booted ? w->silence_ms : WATCH_BOOT_MS;
}

void watch_excuse(struct watch *w, uint64_t gap_ns)
{
    w->heard_ns += gap_ns;
}

static void watch_again(struct watch *w, uint64_t now_ns, uint32_t pause_ms)
{
    fd_close(&w->fd);
    w->setting_clock = false;
    w->next_ns = now_ns + pause_ms * NS_PER_MS;
}

static void watch_ask(struct watch *w, uint16_t port, const uint8_t *token, uint64_t now_ns)
{
    /* The clock is set once the relay is known to be there, so that no boot waits for it. */
    w->setting_clock = w->booted && now_ns >= w->next_clock_ns;
    if (dial_start(&w->dial, port, w->setting_clock ? WIRE_OP_CLOCK : WIRE_OP_CONNECT, 0, token,
                   w->booted ? WATCH_PROBE_MS : WATCH_BOOT_PROBE_MS) < 0)
        watch_again(w, now_ns, WATCH_RETRY_MS);
}

static void watch_dialled(struct watch *w, uint64_t now_ns)
{
    int r = dial_run(&w->dial, now_ns, &w->fd);

    if (r == -EINPROGRESS)
        return;
    if (r == 0 && w->setting_clock) {
        w->next_clock_ns = now_ns + WATCH_CLOCK_MS * NS_PER_MS;
        watch_again(w, now_ns, WATCH_RETRY_MS);
        return;
    }
    /* A fresh connection takes these few bytes at once or is dead. */
    if (r < 0 || send(w->fd, watch_question, sizeof(watch_question) - 1, MSG_NOSIGNAL) !=
                     (ssize_t)sizeof(watch_question) - 1) {
        watch_again(w, now_ns, WATCH_RETRY_MS);
        return;
    }
    w->answer_len = 0;
    w->probe_deadline_ns = now_ns + WATCH_PROBE_MS * NS_PER_MS;
}

/* True when the answer is whole and good. */
static bool watch_listen(struct watch *w, uint64_t now_ns)
{
    const uint32_t want = sizeof(watch_status) - 1;
    ssize_t n = recv(w->fd, w->answer + w->answer_len, want - w->answer_len, MSG_DONTWAIT);

    if (n > 0)
        w->answer_len += (uint32_t)n;
    if (w->answer_len == want) {
        bool good = memcmp(w->answer, watch_status, want) == 0;

        watch_again(w, now_ns, WATCH_INTERVAL_MS);
        return good;
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
        now_ns >= w->probe_deadline_ns)
        watch_again(w, now_ns, WATCH_RETRY_MS);
    return false;
}

enum watch_result watch_run(struct watch *w, uint16_t port, const uint8_t *token,
                            uint64_t now_ns)
{
    if (!w->on)
        return WATCH_WAITING;
    if (w->fd < 0 && w->dial.fd < 0 && now_ns >= w->next_ns)
        watch_ask(w, port, token, now_ns);
    else if (w->dial.fd >= 0)
        watch_dialled(w, now_ns);
    else if (w->fd >= 0 && watch_listen(w, now_ns)) {
        w->booted = true;
        w->heard_ns = now_ns;
        return WATCH_ANSWERED;
    }
    if (now_ns > w->heard_ns && now_ns - w->heard_ns > watch_patience_ms(w) * NS_PER_MS)
        return WATCH_EXPIRED;
    return WATCH_WAITING;
}

void watch_finish(struct watch *w)
{
    dial_finish(&w->dial);
    fd_close(&w->fd);
    *w = WATCH_NONE;
}
