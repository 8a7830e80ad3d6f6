/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: an empty one is -1, every one is O_CLOEXEC, whole reads and writes restart
 * after signals.
 */
#ifndef SKILLVM_BASE_FD_H
#define SKILLVM_BASE_FD_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Closes *fd unless it is negative and sets it to -1. Keeps errno. */
void fd_close(int *fd);
/* Returns *fd and leaves -1 behind: the caller now owns it. */
int fd_steal(int *fd);
#define _cleanup_fd_ __attribute__((cleanup(fd_close)))

/* Reads until len bytes or the end of file. Bytes read, or -errno. */
ssize_t fd_read_full(int fd, void *data, size_t len);
/* The same at an offset (pread). */
ssize_t fd_pread_full(int fd, void *data, size_t len, uint64_t offset);
/* The first size - 1 bytes of a file, and a NUL. Bytes read, or -errno and "". */
ssize_t fd_read_text(const char *path, char *out, size_t size);
/* Writes all of len bytes. 0 or -errno. Sockets get no SIGPIPE. */
int fd_write_full(int fd, const void *data, size_t len);
/* The same at an offset (pwrite). */
int fd_pwrite_full(int fd, const void *data, size_t len, uint64_t offset);
/* The entries of a folder from the first on, whoever else reads dir_fd, which is borrowed. NULL
   with errno; closedir ends it. */
DIR *fd_opendir(int dir_fd);
/*
 * Removes a folder and the files in it; one with folders in it stays. Nothing there is no
 * error.
 */
void fd_remove_folder(int parent_fd, const char *name);
/*
 * Makes a folder, named by at least one byte, and those above it that are missing, of these
 * modes. 0, or -errno, and then path ends behind the one that could not be made.
 */
int fd_make_folders(char *path, mode_t above, mode_t last);
/* Opens what a descriptor is of once more, by /proc: a description of its own, with other
   flags. A descriptor or -errno. */
int fd_reopen(int fd, int flags);
/* Whether reading or accepting would not wait: there is something, an end or an error. */
bool fd_is_readable(int fd);
/*
 * Connects to a unix socket by its path. flags: SOCK_NONBLOCK or 0. The socket, or -errno;
 * -ENAMETOOLONG where the path has no room in an address.
 */
int fd_connect_unix(const char *path, int flags);

struct ucred;
/* Whose process connected to, or listens at the other end of, a unix socket. 0 or -errno. */
int fd_peer(int fd, struct ucred *ret);
/* Sets or clears O_NONBLOCK. 0 or -errno. */
int fd_set_nonblock(int fd, bool on);
/*
 * Sends one message with up to 8 descriptors over a unix socket. 0 or -errno.
 */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
/*
 * Receives one message. Bytes received (0 at end of file) or -errno. Up to max_fds descriptors
 * are stored in ret_fds (owned by the caller, O_CLOEXEC) and counted in *ret_n_fds; more than
 * that is -EMSGSIZE, with all of them closed.
 */
ssize_t fd_receive(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
                   size_t *ret_n_fds);

#endif
