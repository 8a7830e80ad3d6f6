/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/users.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "vmm/jail/jail.h"

#define LINE_MAX_BYTES 512

/* A file of a process, such as "uid_map". 0 or -errno. */
static int write_proc(pid_t pid, const char *name, const char *text)
{
    char path[64];
    _cleanup_fd_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* This process's name in passwd(5). NSS is not asked: this program is linked statically. */
static bool find_name(char *ret, size_t size)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry;
    bool found = false;

    while (file && !found && (entry = fgetpwent(file))) {
        found = entry->pw_uid == geteuid();
        if (found)
            (void)snprintf(ret, size, "%s", entry->pw_name);
    }
    if (file)
        (void)fclose(file);
    return found;
}

/* A line "NAME:FIRST:COUNT", NAME being also a number. 0: it is not ours, or too few. */
static uint32_t first_of(char *line, const char *name)
{
    char number[16], *rest = line, *end;
    const char *owner = strsep(&rest, ":"), *first = strsep(&rest, ":");
    unsigned long from, count;

    (void)snprintf(number, sizeof(number), "%u", geteuid());
    if (!rest || (strcmp(owner, name) != 0 && strcmp(owner, number) != 0))
        return 0;
    from = strtoul(first, &end, 10);
    count = *end ? 0 : strtoul(rest, NULL, 10);
    return count >= JAIL_CELLS && from <= UINT32_MAX - JAIL_CELLS ? (uint32_t)from : 0;
}

/* 0: there is none. */
static uint32_t find_range(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char line[LINE_MAX_BYTES];
    uint32_t first = 0;

    while (file && !first && fgets(line, sizeof(line), file))
        first = first_of(line, name);
    if (file)
        (void)fclose(file);
    return first;
}

/* Whether it was given what newuidmap has, as by AmbientCapabilities= of a unit. */
static bool may_give_any(void)
{
    const uint32_t wanted = 1u << CAP_SETUID | 1u << CAP_SETGID;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &header, has) == 0 && (has[0].effective & wanted) == wanted;
}

const char *users_find(struct users *ret)
{
    char name[128] = "";

    if (geteuid() == 0 || may_give_any()) {
        *ret = (struct users){JAIL_FIRST_USER, JAIL_FIRST_USER, false};
        return NULL;
    }
    (void)find_name(name, sizeof(name));
    *ret = (struct users){.first_user = find_range("/etc/subuid", name),
                          .first_group = find_range("/etc/subgid", name),
                          .helpers = true};
    if (!ret->first_user)
        return "/etc/subuid has no 1024 user ids for this user";
    return ret->first_group ? NULL : "/etc/subgid has no 1024 group ids for this user";
}

/* newuidmap PID INSIDE FIRST COUNT. 0 or -errno. */
static int run_helper(const char *program, pid_t pid, uint32_t inside, uint32_t first)
{
    char process[16], in[16], out[16], count[16], path[64];
    static const char *const dir[] = {"/usr/bin", "/bin"};
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)snprintf(process, sizeof(process), "%d", pid);
        (void)snprintf(in, sizeof(in), "%u", inside);
        (void)snprintf(out, sizeof(out), "%u", first);
        (void)snprintf(count, sizeof(count), "%u", JAIL_CELLS);
        for (size_t i = 0; i < sizeof(dir) / sizeof(dir[0]); i++) {
            (void)snprintf(path, sizeof(path), "%s/%s", dir[i], program);
            (void)execl(path, program, process, in, out, count, (char *)NULL);
        }
        _exit(errno == ENOENT ? ENOENT : EPERM);
    }
    if (child < 0)
        return -errno;
    status = process_reap(child);
    if (!WIFEXITED(status))
        return -EPIPE;
    return WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == ENOENT ? -ENOENT : -EPERM;
}

static int write_map(pid_t pid, const char *name, uint32_t inside, uint32_t first,
                     uint32_t count)
{
    char text[48];

    (void)snprintf(text, sizeof(text), "%u %u %u", inside, first, count);
    return write_proc(pid, name, text);
}

int users_map(const struct users *users, pid_t pid, uint32_t first_inside)
{
    int r = users->helpers
                ? run_helper("newuidmap", pid, first_inside, users->first_user)
                : write_map(pid, "uid_map", first_inside, users->first_user, JAIL_CELLS);

    if (r < 0)
        return r;
    return users->helpers
               ? run_helper("newgidmap", pid, first_inside, users->first_group)
               : write_map(pid, "gid_map", first_inside, users->first_group, JAIL_CELLS);
}

int users_map_self(uint32_t user, uint32_t group, uint32_t inside)
{
    const pid_t self = getpid();
    int r = write_proc(self, "setgroups", "deny");

    if (r < 0)
        return r;
    r = write_map(self, "uid_map", inside, user, 1);
    return r < 0 ? r : write_map(self, "gid_map", inside, group, 1);
}
