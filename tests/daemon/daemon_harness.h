/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a real skillvmd with the fake VMM in a folder of its own, and speaks HTTP to it over its
 * socket, byte by byte where a test wants that.
 */
#ifndef SKILLVM_TESTS_DAEMON_DAEMON_HARNESS_H
#define SKILLVM_TESTS_DAEMON_DAEMON_HARNESS_H

#include "tests/daemon/answer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct harness {
    char dir[64];
    char socket[128];
    char data[128];
    pid_t pid;
    uint16_t port; /* of 127.0.0.1; 0: it listens on its socket alone */
};

/*
 * Between two looks at what is waited for, of which there were so many before: 5 ms, and 100 at
 * last. With sanitizers a question costs a daemon as much as some ms.
 */
void harness_pause(unsigned looks);
/* With as many pauses, some 95 s: for what takes a moment on an idle machine. */
#define HARNESS_LOOKS 1000u
/* Waits until a condition is so at one look, and need not be at the next. */
#define harness_until(condition)                                                               \
    do {                                                                                       \
        unsigned looks_ = 0;                                                                   \
                                                                                               \
        for (; !(condition); looks_++) {                                                       \
            if (looks_ == HARNESS_LOOKS)                                                       \
                fail_msg("it never comes to this: %s", #condition);                            \
            harness_pause(looks_);                                                             \
        }                                                                                      \
    } while (0)
/* Creates the folder; kernel and image are the texts the fake VMM acts on. */
void harness_init(struct harness *h, const char *kernel, const char *image);
/* Writes a text to a file in its folder. */
void harness_write(const struct harness *h, const char *name, const char *text);
/* Starts the daemon with further arguments (NULL ends them) and waits until it answers. */
void harness_start(struct harness *h, const char *const *extra);
/* Waits until somebody accepts at its socket. */
void harness_wait_listening(const struct harness *h);
/* Waits until /ready says so. */
void harness_wait_ready(struct harness *h);
/* Stops a child of the test, all of whose threads stand still then; SIGCONT ends that. */
void harness_freeze(pid_t pid);
/* Sends a signal (0: none) and waits for its end. Its exit status, or -1 for a death by signal.
 */
int harness_stop(struct harness *h, int signal_number);
/* Stops it if need be and removes the folder. */
void harness_finish(struct harness *h);

/* A port of 127.0.0.1 that nobody listens on, and that nobody else is given while the test is
   there; who listens with SO_REUSEADDR may, any number of times. */
uint16_t harness_find_port(void);
/* A connection to the socket. */
int harness_connect(const struct harness *h);
/* A connection to its port, or to its socket. Fails the test where there is none. */
int harness_connect_by(const struct harness *h, bool tcp);
/*
 * For a group of tests: *state is a daemon that is ready and has the skill "demo"; the second
 * one's also listens on 127.0.0.1 and may run eight executions at once.
 */
int harness_setup(void **state);
int harness_setup_tcp(void **state);
/* Checks that it is clean, stops it and removes the folder. Its exit status. */
int harness_teardown(void **state);
/* Sends a request (with Connection: close). The connection, the caller's to close. */
int harness_send(const struct harness *h, const char *method, const char *path,
                 const char *headers, const void *body, size_t len);
/* Sends a request and reads the whole answer. */
struct answer harness_request(const struct harness *h, const char *method, const char *path,
                              const char *headers, const void *body, size_t len);
/* Reads an answer until the end of the connection. */
struct answer harness_read_answer(int fd);

/* Fails the test unless the answer has this status and this part; finishes it. */
void harness_expect(struct answer a, int status, const char *part);
struct answer harness_get(const struct harness *h, const char *path);
/* POST /v1/executions with JSON text. */
struct answer harness_run(const struct harness *h, const char *json);
/* Waits until so many executions have this status. */
void harness_wait_executions(const struct harness *h, const char *status, unsigned n);
/* Waits until a GET gives this status and this part. */
void harness_wait_answer(const struct harness *h, const char *path, int status,
                         const char *part);
/* Whether /metrics has a text, which may begin and end with newlines. */
bool harness_metrics_have(const struct harness *h, const char *text);
/* Waits until it has, or until it has not. */
void harness_wait_metrics(const struct harness *h, const char *text, bool there);
/* Registers a minimal skill under a name and version. Its HTTP status. */
int harness_push(const struct harness *h, const char *name, const char *version,
                 const char *script);
/* A tar with SKILL.md and main.py. The caller frees it. */
char *harness_skill(const char *name, const char *version, const char *script, size_t *ret_len);

/* A file of a skill. */
struct harness_file {
    const char *path; /* NULL ends a list */
    const char *content;
};
/* Registers a skill of these files. Its answer. */
struct answer harness_push_files(const struct harness *h, const struct harness_file *files);

/* How many processes have the daemon as their parent. */
unsigned harness_count_children(const struct harness *h);
/* Waits until so many do. */
void harness_wait_children(const struct harness *h, unsigned n);
/* Kills them, of which there are some: its machines. */
void harness_kill_children(const struct harness *h);
/* Tells what waits for it ("told") to end. */
void harness_tell_children(const struct harness *h);
/* One of them; -1 when there is none. */
pid_t harness_first_child(const struct harness *h);
unsigned harness_count_fds(const struct harness *h);
/* A figure of its /proc/PID/status, by a name such as "Threads:"; -1 where there is none. */
long harness_status(const struct harness *h, const char *name);
/* KiB of the daemon's own memory, without files that it looks at. */
long harness_memory_kib(const struct harness *h);
/* How many entries a subfolder of the data folder has. */
unsigned harness_count_files(const struct harness *h, const char *name);
/* Waits until the daemon has no child and nothing in tmp. */
void harness_assert_clean(const struct harness *h);

#endif
