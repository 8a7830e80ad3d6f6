/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/daemon_harness.h"

#include "tests/unit/cmocka_all.h"

#include "base/buf.h"
#include "base/fd.h"
#include "tests/unit/fake_built.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
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

#define ANSWER_MAX (64u << 20)
#define PAUSE_US   5000u
#define PAUSE_LONG 20u /* times that, at most */

void harness_pause(unsigned looks)
{
    usleep(PAUSE_US * (looks < PAUSE_LONG ? looks + 1 : PAUSE_LONG));
}

void harness_write(const struct harness *h, const char *name, const char *text)
{
    char path[256];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", h->dir, name);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

void harness_init(struct harness *h, const char *kernel, const char *image)
{
    *h = (struct harness){.pid = -1};
    snprintf(h->dir, sizeof(h->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    snprintf(h->socket, sizeof(h->socket), "%s/sock", h->dir);
    snprintf(h->data, sizeof(h->data), "%s/data", h->dir);
    fake_built(h->dir, "vmlinux", kernel);
    fake_built(h->dir, "python.erofs", image);
    fake_built(h->dir, "data.erofs", image);
}

int harness_connect(const struct harness *h)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", h->socket);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int harness_connect_by(const struct harness *h, bool tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(h->port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = tcp ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : harness_connect(h);

    assert_true(fd >= 0);
    if (tcp)
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

void harness_wait_listening(const struct harness *h)
{
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        int fd = harness_connect(h);

        if (fd >= 0) {
            close(fd);
            return;
        }
        if (waitpid(h->pid, NULL, WNOHANG) == h->pid)
            fail_msg("skillvmd has ended");
        harness_pause(i);
    }
    fail_msg("skillvmd does not answer");
}

void harness_start(struct harness *h, const char *const *extra)
{
    const char *argv[24] = {"skillvmd", "--socket", h->socket, "--data", h->data,
                            "--share",  h->dir,     "--vmm",   FAKE_VMM};
    size_t n = 9;
    char *args[24] = {0};

    while (extra && *extra)
        argv[n++] = *extra++;
    memcpy(args, argv, sizeof(args));
    /* Where a test does not care for machines that wait, each child is an execution. */
    setenv("SKILLVM_MACHINES_PARKED", "0", 0);
    /* On a machine that stands still now and then, and hardly longer for what hangs. */
    setenv("SKILLVM_GRACE", "4", 0);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0) {
        /* A test that fails leaves nobody behind, who would hold the output of the run. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGPIPE, SIG_DFL);
        execv(SKILLVMD, args);
        _exit(127);
    }
    harness_wait_listening(h);
}

void harness_wait_ready(struct harness *h)
{
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        struct answer a = harness_get(h, "/ready");
        int status = a.status;

        answer_finish(&a);
        if (status == 200)
            return;
        harness_pause(i);
    }
    fail_msg("skillvmd does not become ready");
}

void harness_freeze(pid_t pid)
{
    int status;

    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

int harness_stop(struct harness *h, int signal_number)
{
    int status = 0;

    assert_true(h->pid > 0);
    assert_int_equal(kill(h->pid, signal_number), 0);
    assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
    h->pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char child[512];
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof(child), "%s/%.200s", path, entry->d_name);
        if (lstat(child, &st) == 0 && S_ISDIR(st.st_mode))
            remove_tree(child);
        else
            unlink(child);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void harness_finish(struct harness *h)
{
    if (h->pid > 0)
        harness_stop(h, SIGKILL);
    remove_tree(h->dir);
    h->dir[0] = '\0';
}

/* Joins the chunks of a chunked body in place. */
static size_t join_chunks(char *body, size_t len)
{
    size_t from = 0, to = 0;

    while (from < len) {
        char *end;
        size_t size = strtoul(body + from, &end, 16);

        from = (size_t)(end - body) + 2;
        if (size == 0 || from + size > len)
            break;
        memmove(body + to, body + from, size);
        to += size;
        from += size + 2;
    }
    body[to] = '\0';
    return to;
}

struct answer harness_read_answer(int fd)
{
    struct buf all = buf_init(ANSWER_MAX);
    struct answer a = {0};
    const char *text;
    const char *body;
    char chunk[65536];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        assert_int_equal(buf_append(&all, chunk, (size_t)n), 0);
    text = buf_cstr(&all);
    assert_non_null(text);
    body = strstr(text, "\r\n\r\n");
    if (body) {
        assert_int_equal(sscanf(text, "HTTP/1.1 %d", &a.status), 1);
        a.headers = strndup(text, (size_t)(body - text) + 2);
        body += 4;
        a.len = all.len - (size_t)(body - text);
        a.body = malloc(a.len + 1);
        assert_non_null(a.body);
        memcpy(a.body, body, a.len);
        a.body[a.len] = '\0';
        if (strcasestr(a.headers, "Transfer-Encoding: chunked"))
            a.len = join_chunks(a.body, a.len);
    }
    buf_finish(&all);
    return a;
}

int harness_send(const struct harness *h, const char *method, const char *path,
                 const char *headers, const void *body, size_t len)
{
    const int fd = harness_connect(h);
    char head[2048];
    int n = snprintf(head, sizeof(head),
                     "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s%zu\r\n\r\n",
                     method, path, headers, "Content-Length: ", len);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, head, (size_t)n), 0);
    /* A refused body may not be read to its end. */
    if (len > 0)
        (void)fd_write_full(fd, body, len);
    return fd;
}

struct answer harness_request(const struct harness *h, const char *method, const char *path,
                              const char *headers, const void *body, size_t len)
{
    _cleanup_fd_ int fd = harness_send(h, method, path, headers, body, len);

    return harness_read_answer(fd);
}

void harness_expect(struct answer a, int status, const char *part)
{
    if (a.status != status || !answer_has(&a, part))
        fail_msg("got %d %s, expected %d with %s", a.status, a.body ? a.body : "(nothing)",
                 status, part);
    answer_finish(&a);
}

struct answer harness_get(const struct harness *h, const char *path)
{
    return harness_request(h, "GET", path, "", NULL, 0);
}

struct answer harness_run(const struct harness *h, const char *json)
{
    return harness_request(h, "POST", "/v1/executions", "Content-Type: application/json\r\n",
                           json, strlen(json));
}

void harness_wait_executions(const struct harness *h, const char *status, unsigned n)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/executions?status=%s", status);
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        struct answer a = harness_get(h, path);
        unsigned found = answer_count(&a, "execution_id");

        answer_finish(&a);
        if (found == n)
            return;
        harness_pause(i);
    }
    fail_msg("there are never %u executions that are %s", n, status);
}

void harness_wait_answer(const struct harness *h, const char *path, int status,
                         const char *part)
{
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        struct answer a = harness_get(h, path);
        bool is_so = a.status == status && answer_has(&a, part);

        answer_finish(&a);
        if (is_so)
            return;
        harness_pause(i);
    }
    harness_expect(harness_get(h, path), status, part);
}

bool harness_metrics_have(const struct harness *h, const char *text)
{
    struct answer a = harness_get(h, "/metrics");
    bool have = strstr(a.body, text) != NULL;

    answer_finish(&a);
    return have;
}

/* Looked at once: what is so at one look need not be at the next. */
void harness_wait_metrics(const struct harness *h, const char *text, bool there)
{
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        if (harness_metrics_have(h, text) == there)
            return;
        harness_pause(i);
    }
    fail_msg("%s %s", there ? "no" : "still", text);
}

static void add_file(struct buf *tar, const char *name, const char *content)
{
    char block[512] = {0};
    static const char zeros[512];
    size_t len = strlen(content);
    unsigned sum = 0;

    snprintf(block, 100, "%s", name);
    snprintf(block + 100, 8, "0000644");
    snprintf(block + 108, 8, "0000000");
    snprintf(block + 116, 8, "0000000");
    snprintf(block + 124, 12, "%011o", (unsigned)len);
    snprintf(block + 136, 12, "00000000000");
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    assert_int_equal(buf_append(tar, block, sizeof(block)), 0);
    assert_int_equal(buf_append(tar, content, len), 0);
    assert_int_equal(buf_append(tar, zeros, (512 - len % 512) % 512), 0);
}

char *harness_skill(const char *name, const char *version, const char *script, size_t *ret_len)
{
    struct buf tar = buf_init(ANSWER_MAX);
    static const char zeros[1024];
    char text[512];

    snprintf(text, sizeof(text),
             "---\nname: %s\ndescription: A skill of a test.\nversion: \"%s\"\n---\nBody.\n",
             name, version);
    add_file(&tar, "SKILL.md", text);
    add_file(&tar, "main.py", script);
    assert_int_equal(buf_append(&tar, zeros, sizeof(zeros)), 0);
    *ret_len = tar.len;
    return (char *)tar.data;
}

int harness_push(const struct harness *h, const char *name, const char *version,
                 const char *script)
{
    size_t len;
    char *tar = harness_skill(name, version, script, &len);
    struct answer a = harness_request(h, "POST", "/v1/skills",
                                      "Content-Type: application/octet-stream\r\n", tar, len);
    int status = a.status;

    answer_finish(&a);
    free(tar);
    return status;
}

struct answer harness_push_files(const struct harness *h, const struct harness_file *files)
{
    struct buf tar = buf_init(ANSWER_MAX);
    static const char zeros[1024];
    struct answer a;

    for (; files->path; files++)
        add_file(&tar, files->path, files->content);
    assert_int_equal(buf_append(&tar, zeros, sizeof(zeros)), 0);
    a = harness_request(h, "POST", "/v1/skills", "Content-Type: application/octet-stream\r\n",
                        tar.data, tar.len);
    buf_finish(&tar);
    return a;
}

uint16_t harness_find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    /* It stays bound until the test ends: that is what keeps the port. */
    return ntohs(address.sin_port);
}

static int set_up(void **state, uint16_t port, const char *const *extra)
{
    struct harness *h = calloc(1, sizeof(*h));

    assert_non_null(h);
    *state = h;
    /* A test may write to a connection that the daemon ended. */
    (void)signal(SIGPIPE, SIG_IGN);
    harness_init(h, "boot", "restore");
    h->port = port;
    harness_start(h, extra);
    harness_wait_ready(h);
    assert_int_equal(harness_push(h, "demo", "1.0", "print(1)"), 201);
    return 0;
}

int harness_setup(void **state)
{
    return set_up(state, 0, NULL);
}

int harness_setup_tcp(void **state)
{
    const uint16_t port = harness_find_port();
    char address[32];
    const char *const extra[] = {"--listen", address, "--max-running", "8", NULL};

    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    return set_up(state, port, extra);
}

int harness_teardown(void **state)
{
    struct harness *h = *state;
    int status;

    harness_assert_clean(h);
    status = harness_stop(h, SIGTERM);
    harness_finish(h);
    free(h);
    return status;
}

static unsigned count_entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned n = 0;

    if (!dir) {
        fail_msg("there is no folder %s", path);
        return 0;
    }
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Counts the daemon's machines, and sends each a signal (0: none); *ret_first gets one of them.
 */
static unsigned list_children(const struct harness *h, int signal_number, pid_t *ret_first)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    unsigned n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[300], line[512] = "";
        FILE *f;
        int parent = 0;

        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        f = fopen(path, "re");
        if (f && fgets(line, sizeof(line), f) && strrchr(line, ')') &&
            sscanf(strrchr(line, ')') + 2, "%*c %d", &parent) == 1 && parent == h->pid &&
            !strstr(line, "(skillvm-jail)")) {
            *ret_first = (pid_t)strtol(entry->d_name, NULL, 10);
            (void)kill(*ret_first, signal_number);
            n++;
        }
        if (f)
            fclose(f);
    }
    closedir(dir);
    return n;
}

unsigned harness_count_children(const struct harness *h)
{
    pid_t first;

    return list_children(h, 0, &first);
}

void harness_wait_children(const struct harness *h, unsigned n)
{
    unsigned seen = harness_count_children(h);

    for (unsigned i = 0; i < HARNESS_LOOKS && seen != n; i++) {
        harness_pause(i);
        seen = harness_count_children(h);
    }
    assert_int_equal(seen, n);
}

void harness_kill_children(const struct harness *h)
{
    pid_t first;

    assert_int_not_equal(list_children(h, SIGKILL, &first), 0);
}

void harness_tell_children(const struct harness *h)
{
    pid_t first;

    assert_int_not_equal(list_children(h, SIGUSR1, &first), 0);
}

pid_t harness_first_child(const struct harness *h)
{
    pid_t first = -1;

    (void)list_children(h, 0, &first);
    return first;
}

unsigned harness_count_fds(const struct harness *h)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd", h->pid);
    return count_entries(path);
}

long harness_status(const struct harness *h, const char *name)
{
    char path[64], line[256];
    long figure = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", h->pid);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, name, strlen(name)) == 0)
            figure = strtol(line + strlen(name), NULL, 10);
    }
    fclose(f);
    return figure;
}

long harness_memory_kib(const struct harness *h)
{
    return harness_status(h, "RssAnon:");
}

unsigned harness_count_files(const struct harness *h, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", h->data, name);
    return count_entries(path);
}

void harness_assert_clean(const struct harness *h)
{
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        if (harness_count_children(h) == 0 && harness_count_files(h, "tmp") == 0)
            return;
        harness_pause(i);
    }
    assert_int_equal(harness_count_children(h), 0);
    assert_int_equal(harness_count_files(h, "tmp"), 0);
}
