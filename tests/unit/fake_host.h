/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor in a child, with this program as its QEMU, in a folder of its own. The program
 * has to be fake_qemu() where it is called by that name.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_HOST_H
#define SKILLVM_TESTS_UNIT_FAKE_HOST_H

#include "api/host/host.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern char fake_host_dir[64], fake_host_data[96], fake_host_socket_path[96];
/* Tells a fake QEMU to fail once, as of fake_qemu.c. */
extern char fake_host_mode_path[96];
extern struct host_options fake_host_options;

int fake_host_setup(void **state);
int fake_host_teardown(void **state);

/* Makes an empty file in the folder. */
void fake_host_touch(const char *name);
/* Runs a supervisor in a child; *ret_ready gets the end of its pipe. */
pid_t fake_host_start(int *ret_ready);
/* One that runs. */
pid_t fake_host_start_ready(void);
/* The last line that the supervisor told, without progress; closes the pipe. */
void fake_host_told(int fd, char *out, size_t size);
/* That line is that it is ready. */
void fake_host_told_ready(int ready);
/* How a child ended: its status, or 128 + the signal. */
int fake_host_end(pid_t pid);
void fake_host_stop(pid_t pid);
/* Asks on the public socket. The bytes of the answer, or -errno. */
int fake_host_ask(const char *path, char *out, size_t size);
struct host_status fake_host_status_now(void);
/* Waits until it is ready again after so many restarts. */
void fake_host_wait_for_restart(uint32_t restarts);

#endif
