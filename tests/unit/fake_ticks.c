/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_ticks.h"

#include "guest-init/proto.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHATS 4000

static void chat(const struct fake *f)
{
    char text[202];

    for (size_t i = 0; i < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    for (int i = 0; i < CHATS; i++)
        fake_send_frame(f, i % 2 ? PROTO_STDERR : PROTO_STDOUT, text + (i & 2) / 2 * 101, 101);
    fake_send_text(f, PROTO_STDOUT, "that is all\n");
}

void fake_tick(const struct fake *f)
{
    if (strcmp(f->behaviour, "chatty") == 0)
        chat(f);
    /* For longer than any test takes. */
    for (int i = 0; i < 36000; i++) {
        struct pollfd p = {.fd = f->vsock_fd, .events = POLLIN};
        char text[32];

        snprintf(text, sizeof(text), "tick %d\n", i);
        fake_send_text(f, PROTO_STDOUT, text);
        if (poll(&p, 1, 100) > 0) {
            uint8_t *data;
            size_t len;

            if (fake_receive_frame(f, &data, &len) != PROTO_CANCEL)
                fake_die("not CANCEL");
            free(data);
            if (strcmp(f->behaviour, "deaf") != 0) {
                fake_finish(f, 0, 9, PROTO_EXIT_CANCELLED);
                return;
            }
        }
    }
}

void fake_wait_told(const struct fake *f)
{
    sigset_t told;
    int number;

    (void)sigemptyset(&told);
    (void)sigaddset(&told, SIGUSR1);
    /* Before it says so: it is not lost. */
    (void)sigprocmask(SIG_BLOCK, &told, NULL);
    fake_send_text(f, PROTO_STDOUT, "waits\n");
    (void)sigwait(&told, &number);
    fake_finish(f, 0, 0, 0);
}

void fake_be_late(const struct fake *f)
{
    struct pollfd p = {.fd = f->vsock_fd, .events = POLLIN};
    uint8_t *data;
    size_t len;

    if (strcmp(f->behaviour, "session-late") != 0 || poll(&p, 1, 8000) <= 0)
        return;
    if (fake_receive_frame(f, &data, &len) != PROTO_CANCEL)
        fake_die("not CANCEL");
    free(data);
    usleep(7000000);
}
