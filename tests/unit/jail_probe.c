/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program finds in the jail that is not a machine: it says so on its standard error, a
 * line each, "name=0" for what it could do and "name=ERRNO" for what it could not. Then it
 * waits to be ended. Without any layer it does nothing to the host, whoever it is.
 *
 *   jail_probe NAME-OF-AN-ABSTRACT-SOCKET PROCESS KEY-OF-SHARED-MEMORY [fork]
 *
 * fork: it leaves children behind that ignore what can be ignored, all that it may have.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/jail/jail.h"

extern char **environ;

static void say(const char *name, long r)
{
    fprintf(stderr, "%s=%d\n", name, r < 0 ? errno : 0);
}

static void count(const char *name, long n)
{
    fprintf(stderr, "%s=%ld\n", name, n);
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    return dir ? n : -1;
}

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int connect_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memcpy(address.sun_path + 1, name, strlen(name));
    return connect(fd, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

static int bind_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

static int has_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {{0}};

    (void)syscall(SYS_capget, &header, now);
    return now[0].permitted || now[1].permitted || now[0].effective || now[1].effective;
}

/* A key of the session's keyring, by the name of the socket. */
static long find_key(const char *name)
{
    return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", name, 0);
}

/* For the next machine, which has the same keyring. */
static long keep_key(void)
{
    return syscall(SYS_add_key, "user", "skillvm-kept", "k", 1, KEY_SPEC_SESSION_KEYRING);
}

/* By the /proc that it is given: the numbers that its namespaces have in it. */
static void name_namespaces(void)
{
    static const char *const names[] = {"ns/cgroup", "ns/ipc",  "ns/mnt", "ns/net",
                                        "ns/pid",    "ns/user", "ns/uts"};
    char path[32];
    struct stat st;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "self/%s", names[i]);
        count(names[i], fstatat(JAIL_FD_PROC, path, &st, 0) == 0 ? (long)st.st_ino : -1);
    }
}

/* What would be there for the next machine, each of them taken away again. */
static long keep_shared_memory(void)
{
    int id = shmget(IPC_PRIVATE, 1, 0600);

    return id < 0 ? id : shmctl(id, IPC_RMID, NULL);
}

static long keep_messages(void)
{
    int id = msgget(IPC_PRIVATE, 0600);

    return id < 0 ? id : msgctl(id, IPC_RMID, NULL);
}

static long keep_semaphores(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);

    return id < 0 ? id : semctl(id, 0, IPC_RMID);
}

static long keep_queue(void)
{
    mqd_t queue = mq_open("/skillvm-kept", O_RDWR | O_CREAT | O_EXCL, 0600, NULL);

    return queue == (mqd_t)-1 ? -1 : mq_unlink("/skillvm-kept");
}

/* How many kinds of it there may be. */
static int count_kept(void)
{
    return (keep_shared_memory() >= 0) + (keep_messages() >= 0) + (keep_semaphores() >= 0) +
           (keep_queue() >= 0);
}

/* To what it is: only who may not is told so. */
static int change_root_mode(void)
{
    struct stat st = {0};

    return stat("/", &st) < 0 ? -1 : chmod("/", st.st_mode & 07777);
}

/* How many it may have, up to 40. */
static int count_processes(void)
{
    pid_t children[40];
    int n = 0;

    while (n < 40 && (children[n] = fork()) >= 0) {
        if (children[n++] == 0)
            for (;;)
                pause();
    }
    for (int i = 0; i < n; i++) {
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
    }
    return n;
}

/* What its root folder is without: a bit for each. */
static long count_root_flags(void)
{
    struct statvfs fs = {0};

    (void)statvfs("/", &fs);
    return (long)(fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC));
}

/* A user namespace, by a child. */
static long make_namespace(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return pid < 0 ? pid : waitpid((pid_t)pid, NULL, 0);
}

static void leave_children(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 1; i < JAIL_THREADS; i++)
        if (fork() == 0)
            for (;;)
                pause();
}

int main(int argc, char **argv)
{
    pid_t process;

    if (argc < 4)
        return 2;
    if (argc > 4)
        leave_children();
    process = atoi(argv[2]);
    count("user", getuid());
    count("group", getgid());
    count("groups", getgroups(0, NULL));
    count("capabilities", has_capabilities());
    count("environment", environ[0] != NULL);
    count("descriptors", count_descriptors());
    count("parent", getppid() > 0);
    count("leader", getpgrp() == getpid());
    count("personality", personality(0xffffffff));
    count("processes", count_processes());
    say("namespace", make_namespace());
    name_namespaces();
    /* There also the old root would be, if it still lay over this one. */
    count("entries", count_entries("/.."));
    count("flags", count_root_flags());
    say("open", open("/etc/passwd", O_RDONLY));
    say("mode", change_root_mode());
    say("make", mkdir("/skillvm-made", 0700));
    (void)rmdir("/skillvm-made");
    /* What nobody can do, of which who may not is told something else. */
    say("mount", mount("none", "/", "tmpfs", 0, "no-such-option"));
    say("hostname", syscall(SYS_sethostname, "", -1L));
    say("abstract", connect_abstract(argv[1]));
    say("loopback", bind_loopback());
    say("shared-memory", shmget(atoi(argv[3]), 1, 0));
    count("kept", count_kept());
    say("key", find_key(argv[1]));
    say("keep", keep_key());
    say("signal", kill(process, 0));
    say("trace", ptrace(PTRACE_ATTACH, process, NULL, NULL));
    say("end", kill(1, 0));
    fputs("done\n", stderr);
    for (;;)
        pause();
}
