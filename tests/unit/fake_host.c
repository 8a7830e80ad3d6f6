/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_host.h"

#include "api/host/supervisor.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static char share[96], path_env[160];
char fake_host_dir[64], fake_host_data[96], fake_host_socket_path[96], fake_host_mode_path[96];
struct host_options fake_host_options = {.data_dir = fake_host_data,
                                         .socket_path = fake_host_socket_path,
                                         .share_dir = share,
                                         .memory_mib = 64,
                                         .silence_ms = 20000};

void fake_host_touch(const char *name)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", fake_host_dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

int fake_host_setup(void **state)
{
    char link_path[128], target[512], old_path[64];
    ssize_t n = readlink("/proc/self/exe", target, sizeof(target) - 1);

    (void)state;
    strcpy(fake_host_dir, "/tmp/skillvm-super.XXXXXX");
    assert_non_null(mkdtemp(fake_host_dir));
    assert_true(n > 0);
    target[n] = '\0';
    snprintf(share, sizeof(share), "%s/share", fake_host_dir);
    snprintf(fake_host_data, sizeof(fake_host_data), "%s/data, with a comma", fake_host_dir);
    snprintf(fake_host_socket_path, sizeof(fake_host_socket_path), "%s/s", fake_host_dir);
    snprintf(fake_host_mode_path, sizeof(fake_host_mode_path), "%s/port-taken", fake_host_dir);
    snprintf(link_path, sizeof(link_path), "%s/share/softhost", fake_host_dir);
    assert_int_equal(mkdir(share, 0700), 0);
    assert_int_equal(mkdir(link_path, 0700), 0);
    fake_host_touch("share/softhost/vmlinux");
    fake_host_touch("share/softhost/initrd.img");
    fake_host_touch("share/softhost/root.erofs");
    fake_host_touch("share/softhost/payload.erofs");
    snprintf(link_path, sizeof(link_path), "%s/qemu-system-x86_64", fake_host_dir);
    assert_int_equal(symlink(target, link_path), 0);
    snprintf(old_path, sizeof(old_path), "%s", fake_host_dir);
    snprintf(path_env, sizeof(path_env), "%s:/usr/bin:/bin", old_path);
    setenv("PATH", path_env, 1);
    setenv("FAKE_QEMU_MODE", "good", 1);
    setenv("FAKE_QEMU_PORT_TAKEN", fake_host_mode_path, 1);
    return 0;
}

int fake_host_teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", fake_host_dir);
    return system(command);
}

pid_t fake_host_start(int *ret_ready)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        _exit(supervisor_run(&fake_host_options, fds[1], NULL) < 0 ? 1 : 0);
    }
    close(fds[1]);
    *ret_ready = fds[0];
    return pid;
}

void fake_host_told(int fd, char *out, size_t size)
{
    char text[4096], *rest = text, *line;
    ssize_t n = fd_read_full(fd, text, sizeof(text) - 1);

    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    out[0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line && strncmp(line, "progress", 8) != 0)
            snprintf(out, size, "%s", line);
    }
}

int fake_host_ask(const char *path, char *out, size_t size)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[128];
    ssize_t n;

    strcpy(addr.sun_path, fake_host_socket_path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        close(fd);
        return -errno;
    }
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n\r\n", path);
    assert_int_equal(fd_write_full(fd, request, strlen(request)), 0);
    n = fd_read_full(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(fd);
    return (int)n;
}

struct host_status fake_host_status_now(void)
{
    struct host_status status;

    assert_int_equal(host_status_read(fake_host_data, &status, NULL), 0);
    return status;
}

void fake_host_wait_for_restart(uint32_t restarts)
{
    for (int i = 0; i < 2400; i++) {
        struct host_status status = fake_host_status_now();

        if (status.restarts >= restarts && status.state == HOST_READY)
            return;
        usleep(50000);
    }
    fail_msg("no restart");
}

int fake_host_end(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void fake_host_told_ready(int ready)
{
    char line[1024];

    fake_host_told(ready, line, sizeof(line));
    assert_string_equal(line, "ready");
}

pid_t fake_host_start_ready(void)
{
    int ready;
    pid_t pid = fake_host_start(&ready);

    fake_host_told_ready(ready);
    return pid;
}

void fake_host_stop(pid_t pid)
{
    kill(pid, SIGTERM);
    assert_int_equal(fake_host_end(pid), 0);
}
