/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What callers make the daemon hold on disk for a moment: files that are read out of an
 * archive, answers that nobody takes, bodies that come, archives that are checked. Tenants with
 * keys and a limit on their storage.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tenants_world.h"
#include "tests/unit/make_archive.h"

#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define expect  harness_expect
#define MIB     (1u << 20)
#define TRIES   9000 /* of 10 ms */
#define BULK    16u  /* MiB of the file that an execution leaves */
#define READERS 6
#define UNREAD  30
#define STREAMS 26
#define WIDE    40u          /* MiB of zeros in an archive */
#define NOISE   (450u << 10) /* beside them, so that it is no bomb */
#define ANSWERS (64u * MIB)  /* what a tenant's unread answers may take */

static struct world w;

static int start(void **state)
{
    (void)state;
    begin(&w, "4", "0");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    end(&w);
    return 0;
}

/* Bytes in files without a name, once under a folder, that the daemon has open. */
static uint64_t nameless_bytes(const char *folder)
{
    char path[64], link[512];
    struct dirent *entry;
    uint64_t bytes = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)w.h.pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
        struct stat st;

        if (n <= 0)
            continue;
        link[n] = '\0';
        if (strncmp(link, folder, strlen(folder)) == 0 && strstr(link, "(deleted)") &&
            fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
            bytes += (uint64_t)st.st_size;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static uint64_t held_bytes(void)
{
    return nameless_bytes(w.h.data);
}

/* Sends a request of the tenant and leaves the connection open. */
static int ask(const char *method, const char *path, const char *headers)
{
    int fd = harness_connect(&w.h);
    char head[1024];

    assert_true(fd >= 0);
    snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s\r\n",
             method, path, w.a.headers, headers);
    assert_int_equal(fd_write_full(fd, head, strlen(head)), 0);
    return fd;
}

static void wait_answered(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&pfd, 1, 60000), 1);
}

static void take_id(struct answer a, int status, char id[ID_SIZE])
{
    assert_int_equal(a.status, status);
    answer_text(&a, "execution_id", id, ID_SIZE);
    answer_finish(&a);
}

static void check_bulk(struct answer a)
{
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.headers, "Content-Length: 16777216\r\n"));
    assert_int_equal(a.len, BULK * MIB);
    for (size_t at = 0; at < a.len; at += 65536)
        assert_int_equal((uint8_t)a.body[at + 777], (uint8_t)(at / 65536));
    answer_finish(&a);
}

/* One file of an archive is read while it is taken, however many read it. */
static void reading_takes_no_disk(void **state)
{
    char id[ID_SIZE], path[96];
    struct answer head;
    int fds[READERS];

    (void)state;
    take_id(run_as(&w, &w.a,
                   "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"bulk\",\"FAKE_DATA\":\"16\"}}"),
            200, id);
    /* What the execution itself held goes behind its answer. */
    harness_until(held_bytes() == 0);
    snprintf(path, sizeof(path), "/v1/executions/%s/files/bulk.bin", id);
    for (int i = 0; i < READERS; i++)
        fds[i] = ask("GET", path, "");
    for (int i = 0; i < READERS; i++)
        wait_answered(fds[i]);
    print_message("held: %llu KiB with %d files of %u MiB unread\n",
                  (unsigned long long)(held_bytes() >> 10), READERS, BULK);
    assert_int_equal(held_bytes(), 0);
    for (int i = 0; i < READERS; i++) {
        if (i % 2)
            check_bulk(harness_read_answer(fds[i]));
        close(fds[i]);
    }
    head = as(&w, &w.a, "HEAD", path, "");
    assert_int_equal(head.status, 200);
    assert_non_null(strstr(head.headers, "Content-Length: 16777216\r\n"));
    assert_int_equal(head.len, 0);
    answer_finish(&head);
    snprintf(path, sizeof(path), "/v1/executions/%s/files/small.txt", id);
    expect(as(&w, &w.a, "GET", path, ""), 200, "small");
    expect(as(&w, &w.a, "GET", "/health", ""), 200, "ok");
}

/* A request whose result is some 3.5 MiB; the caller frees it. */
static char *large_request(void)
{
    char *json = malloc(4 * MIB);
    int n;

    assert_non_null(json);
    n = sprintf(json, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"echo\"},\"input\":\"");
    memset(json + n, 'x', 7 * MIB / 2);
    strcpy(json + n + 7 * MIB / 2, "\"}");
    return json;
}

/* Answers that nobody takes hold so much of a tenant's, and then it has to read them first. */
static void unread_answers_are_bounded(void **state)
{
    char *json = large_request(), id[ID_SIZE], path[64];
    unsigned refused = 0;
    int fds[UNREAD];

    (void)state;
    take_id(run_as(&w, &w.a, json), 200, id);
    free(json);
    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    for (int i = 0; i < UNREAD; i++)
        fds[i] = ask("GET", path, "");
    for (int i = 0; i < UNREAD; i++)
        wait_answered(fds[i]);
    print_message("held: %llu MiB with %d answers unread\n",
                  (unsigned long long)(held_bytes() / MIB), UNREAD);
    assert_in_range(held_bytes(), ANSWERS / 2, ANSWERS);
    for (int i = 0; i < UNREAD; i++) {
        struct answer a = harness_read_answer(fds[i]);

        assert_true(a.status == 200 || a.status == 429);
        refused += a.status == 429;
        answer_finish(&a);
        close(fds[i]);
    }
    assert_in_range(refused, 1, UNREAD - 2);
    harness_until(held_bytes() == 0);
    expect(as(&w, &w.a, "GET", path, ""), 200, "xxxx");
}

/* The same of events, whose results are the executions' own. */
static void unread_events_are_bounded(void **state)
{
    char *json = large_request(), headers[128];
    const double before = ended(&w, &w.a);
    unsigned refused = 0;
    int fds[STREAMS];

    (void)state;
    snprintf(headers, sizeof(headers), "Accept: text/event-stream\r\nContent-Length: %zu\r\n",
             strlen(json));
    for (int i = 0; i < STREAMS; i++) {
        fds[i] = ask("POST", "/v1/executions", headers);
        assert_int_equal(fd_write_full(fds[i], json, strlen(json)), 0);
    }
    free(json);
    for (int i = 0; i < 3000 && (ended(&w, &w.a) < before + STREAMS || held_bytes() > ANSWERS);
         i++)
        usleep(10000);
    assert_true(ended(&w, &w.a) >= before + STREAMS);
    assert_in_range(held_bytes(), ANSWERS / 2, ANSWERS);
    for (int i = 0; i < STREAMS; i++) {
        struct answer a = harness_read_answer(fds[i]);
        bool is_error = strstr(a.body, "event: error\ndata: {\"error\":\"overloaded\"") != NULL;

        assert_int_equal(a.status, 200);
        assert_true(is_error || strstr(a.body, "event: result\ndata: {\"execution_id\""));
        refused += is_error;
        answer_finish(&a);
        close(fds[i]);
    }
    assert_in_range(refused, 1, STREAMS - 2);
    harness_until(held_bytes() == 0);
}

/* Sends so much of a body. */
static void send_bytes(int fd, size_t bytes)
{
    char *block = calloc(1, bytes);

    assert_non_null(block);
    assert_int_equal(fd_write_full(fd, block, bytes), 0);
    free(block);
}

/* The status of a body that asks first. */
static int ask_first(const char *path, unsigned bytes, const char *part)
{
    char headers[128], text[1024] = "";
    size_t len = 0;
    ssize_t n = 1;
    int fd, status = 0;

    snprintf(headers, sizeof(headers), "Expect: 100-continue\r\nContent-Length: %u\r\n", bytes);
    fd = ask("POST", path, headers);
    while (n > 0 && !(strstr(text, "100 Continue") || (part && strstr(text, part)))) {
        n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
    }
    assert_int_equal(sscanf(text, "HTTP/1.1 %d", &status), 1);
    if (part && status != 100)
        assert_non_null(strstr(text, part));
    close(fd);
    return status;
}

/* A body that does not fit is refused by its length, and what comes counts until it is over. */
static void uploads_count_while_they_come(void **state)
{
    int fd, status = 413;

    (void)state;
    set_limits(&w, &w.a, "\"storage_bytes\":4194304");
    assert_int_equal(ask_first("/v1/files", 25 * MIB, "quota_exceeded"), 413);
    fd = ask("POST", "/v1/files", "Content-Length: 3145728\r\n");
    send_bytes(fd, 2 * MIB);
    harness_until(held_bytes() >= 2 * MIB);
    assert_int_equal(ask_first("/v1/files", 2 * MIB, "quota_exceeded"), 413);
    /* An execution's body goes when it was read: it is asked to come again. */
    assert_int_equal(ask_first("/v1/executions", 2 * MIB, "overloaded"), 429);
    assert_int_equal(ask_first("/v1/executions", 5 * MIB, "quota_exceeded"), 413);
    assert_int_equal(ask_first("/v1/executions", MIB / 2, NULL), 100);
    close(fd);
    for (int i = 0; i < TRIES && status != 100; i++) {
        usleep(10000);
        status = ask_first("/v1/files", 2 * MIB, "quota_exceeded");
    }
    assert_int_equal(status, 100);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* A body that does not say how long it is ends where the room does, and never fits. */
static void send_chunks(const char *path)
{
    int fd = ask("POST", path, "Transfer-Encoding: chunked\r\n");
    uint64_t most = 0;

    for (int i = 0; i < 16; i++) {
        uint64_t now;

        assert_int_equal(fd_write_full(fd, "80000\r\n", 7), 0);
        send_bytes(fd, 0x80000);
        assert_int_equal(fd_write_full(fd, "\r\n", 2), 0);
        now = held_bytes();
        most = now > most ? now : most;
    }
    assert_int_equal(fd_write_full(fd, "0\r\n\r\n", 5), 0);
    expect(harness_read_answer(fd), 413, "quota_exceeded");
    close(fd);
    assert_in_range(most, 1, 4 * MIB);
    harness_until(held_bytes() == 0);
}

static void chunks_are_counted(void **state)
{
    (void)state;
    set_limits(&w, &w.a, "\"storage_bytes\":4194304");
    send_chunks("/v1/files");
    send_chunks("/v1/executions");
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* What was stored is not counted as coming too, however soon the next one comes. */
static void stored_is_counted_once(void **state)
{
    char headers[512], *content = calloc(1, 3 * MIB), path[96];

    (void)state;
    assert_non_null(content);
    set_limits(&w, &w.a, "\"storage_bytes\":4194304");
    snprintf(headers, sizeof(headers), "%s", w.a.headers);
    for (int i = 0; i < 20; i++) {
        struct answer a = harness_request(&w.h, "POST", "/v1/files", headers, content, 3 * MIB);

        assert_int_equal(a.status, 201);
        snprintf(path, sizeof(path), "/v1/files/%.37s", strstr(a.body, "file_"));
        answer_finish(&a);
        expect(harness_request(&w.h, "POST", "/v1/files", headers, content, 2 * MIB), 413,
               "quota_exceeded");
        expect(harness_request(&w.h, "POST", "/v1/files", headers, content, MIB / 2), 201,
               "\"size_bytes\":524288,");
        a = as(&w, &w.a, "DELETE", path, "");
        assert_int_equal(a.status, 204);
        answer_finish(&a);
        a = as(&w, &w.a, "GET", "/v1/files", "");
        snprintf(path, sizeof(path), "/v1/files/%.37s", strstr(a.body, "file_"));
        answer_finish(&a);
        a = as(&w, &w.a, "DELETE", path, "");
        assert_int_equal(a.status, 204);
        answer_finish(&a);
    }
    free(content);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* The most that the daemon held, as often as somebody could look. */
struct watch {
    pthread_t thread;
    atomic_bool over;
    uint64_t disk, memory; /* bytes */
};

static void *look(void *arg)
{
    struct watch *watch = arg;

    while (!watch->over) {
        uint64_t disk = held_bytes(), memory = nameless_bytes("/memfd:");

        watch->disk = disk > watch->disk ? disk : watch->disk;
        watch->memory = memory > watch->memory ? memory : watch->memory;
    }
    return NULL;
}

static void watch_begin(struct watch *watch)
{
    *watch = (struct watch){0};
    assert_int_equal(pthread_create(&watch->thread, NULL, look, watch), 0);
}

/* Nothing may have been in memory, nor more than that on disk. */
static void watch_end(struct watch *watch, uint64_t max)
{
    watch->over = true;
    assert_int_equal(pthread_join(watch->thread, NULL), 0);
    print_message("held: %llu KiB on disk, %llu in memory\n",
                  (unsigned long long)(watch->disk >> 10),
                  (unsigned long long)(watch->memory >> 10));
    assert_int_equal(watch->memory, 0);
    assert_in_range(watch->disk, 0, max);
}

/* An anonymous file with a skill of WIDE MiB in half a MiB. */
static int make_wide(void)
{
    static char noise[NOISE + 1];
    static const struct member members[] = {
        {.path = "SKILL.md", .content = "---\nname: wide\ndescription: d\n---\nbody\n"},
        {.path = "main.py", .content = "print(1)\n"},
        {.path = "noise", .content = noise},
        {.path = "zeros", .zeros = WIDE * MIB},
        {0},
    };
    unsigned random = 1;

    for (size_t i = 0; i < NOISE; i++) {
        random = random * 1103515245 + 12345;
        noise[i] = (char)(1 + (random >> 16) % 255);
    }
    return make_archive(TAR_GZ, members);
}

/* Sends it as a part of a form, behind what else the form has. */
static struct answer send_form(int archive, const char *path, const char *first,
                               const char *part)
{
    size_t len = (size_t)lseek(archive, 0, SEEK_END);
    struct buf form = buf_init(MIB);
    struct answer answer;
    char headers[512];

    snprintf(headers, sizeof(headers), "Content-Type: multipart/form-data; boundary=XX\r\n%s",
             w.a.headers);
    buf_printf(&form,
               "%s--XX\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"s\"\r\n\r\n",
               first, part);
    assert_int_equal(buf_reserve(&form, len), 0);
    assert_int_equal(fd_pread_full(archive, form.data + form.len, len, 0), len);
    form.len += len;
    assert_int_equal(buf_printf(&form, "\r\n--XX--\r\n"), 0);
    answer = harness_request(&w.h, "POST", path, headers, form.data, form.len);
    buf_finish(&form);
    return answer;
}

static struct answer send_wide(int archive, const char *path, const char *part)
{
    return send_form(archive, path, "", part);
}

/* It comes whole, and is refused for what is in it. */
static void expect_no_room(int archive, const char *path, const char *part)
{
    struct answer a = send_wide(archive, path, part);
    const char *held = a.body ? strstr(a.body, "bytes are in use and ") : NULL;
    const uint64_t bytes = held ? strtoull(held + 21, NULL, 10) : 0;

    assert_int_equal(a.status, 413);
    assert_true(answer_has(&a, "\"error\":\"quota_exceeded\""));
    assert_true(bytes > (uint64_t)lseek(archive, 0, SEEK_END) + MIB / 8);
    answer_finish(&a);
}

/* Waits until a body would be taken. */
static void wait_room(const char *path, unsigned bytes)
{
    int status = 0;

    for (int i = 0; i < TRIES && status != 100; i++) {
        status = ask_first(path, bytes, NULL);
        usleep(10000);
    }
    assert_int_equal(status, 100);
}

/* What is unpacked counts before it is there, and goes again. */
static void archives_count_while_they_are_checked(void **state)
{
    int archive = make_wide();
    struct watch watch;

    (void)state;
    set_limits(&w, &w.a, "\"storage_bytes\":1048576");
    watch_begin(&watch);
    expect_no_room(archive, "/v1/skills", "file");
    expect_no_room(archive, "/v1/skills/validate", "file");
    expect_no_room(archive, "/v1/executions", "skill_archive");
    watch_end(&watch, MIB);
    harness_until(held_bytes() == 0);
    wait_room("/v1/executions", MIB);
    /* It fits, but not twice: the canonical tar is written beside what was unpacked. */
    set_limits(&w, &w.a, "\"storage_bytes\":62914560");
    watch_begin(&watch);
    expect_no_room(archive, "/v1/skills", "file");
    watch_end(&watch, 60 * MIB);
    set_limits(&w, &w.a, "\"storage_bytes\":104857600");
    expect(send_wide(archive, "/v1/skills/validate", "file"), 200, "\"valid\":true");
    close(archive);
    wait_room("/v1/executions", 16 * MIB);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* An archive that is taken was in no memory either, and its skill is counted once. */
static void archives_are_unpacked_on_disk(void **state)
{
    int archive = make_wide();
    struct watch watch;

    (void)state;
    set_limits(&w, &w.a, "\"storage_bytes\":104857600");
    watch_begin(&watch);
    expect(send_wide(archive, "/v1/skills", "file"), 201, "\"name\":\"wide\"");
    assert_int_equal(ask_first("/v1/files", 58 * MIB, "quota_exceeded"), 100);
    watch_end(&watch, 100 * MIB);
    close(archive);
    expect(as(&w, &w.a, "DELETE", "/v1/skills/wide/1.0.0", ""), 204, "");
    wait_room("/v1/files", 98 * MIB);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* The skill that came with an execution counts as long as that is there. */
static void what_waits_counts(void **state)
{
    int archive = make_wide();
    char id[ID_SIZE];

    (void)state;
    take_id(send_form(archive, "/v1/executions",
                      "--XX\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n"
                      "{\"async\":true,\"timeout\":60,\"env\":{\"FAKE\":\"sleep\","
                      "\"FAKE_DATA\":\"60000\"}}\r\n",
                      "skill_archive"),
            202, id);
    close(archive);
    wait_status(&w, &w.a, id, "running");
    set_limits(&w, &w.a, "\"storage_bytes\":46137344");
    assert_int_equal(ask_first("/v1/executions", 5 * MIB, "overloaded"), 429);
    assert_int_equal(ask_first("/v1/executions", 2 * MIB, NULL), 100);
    expect(cancel(&w, &w.a, id), 202, "");
    wait_room("/v1/executions", 5 * MIB);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

/* The list of its input files counts as long as the execution is there. */
static void a_list_of_files_counts(void **state)
{
    struct answer a = as(&w, &w.a, "POST", "/v1/files?name=x", "alpha");
    struct buf json = buf_init(2 * MIB);
    char file[64], id[ID_SIZE];

    (void)state;
    assert_int_equal(a.status, 201);
    answer_text(&a, "id", file, sizeof(file));
    answer_finish(&a);
    buf_printf(&json, "{\"skill\":\"demo\",\"async\":true,\"timeout\":60,\"env\":{\"FAKE\":"
                      "\"sleep\",\"FAKE_DATA\":\"60000\"},\"files\":[");
    for (unsigned i = 0; i < 10000; i++)
        buf_printf(&json, "%s{\"id\":\"%s\",\"path\":\"%u\"}", i ? "," : "", file, i);
    buf_printf(&json, "]}");
    assert_int_equal(json.error, 0);
    assert_true(json.len > MIB / 2);
    take_id(run_as(&w, &w.a, buf_cstr(&json)), 202, id);
    buf_finish(&json);
    wait_status(&w, &w.a, id, "running");
    set_limits(&w, &w.a, "\"storage_bytes\":2097152");
    assert_int_equal(ask_first("/v1/executions", 2 * MIB - MIB / 4, "overloaded"), 429);
    expect(cancel(&w, &w.a, id), 202, "");
    wait_room("/v1/executions", 2 * MIB - MIB / 4);
    set_limits(&w, &w.a, "\"storage_bytes\":0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_takes_no_disk),
        cmocka_unit_test(uploads_count_while_they_come),
        cmocka_unit_test(chunks_are_counted),
        cmocka_unit_test(stored_is_counted_once),
        cmocka_unit_test(archives_count_while_they_are_checked),
        cmocka_unit_test(archives_are_unpacked_on_disk),
        cmocka_unit_test(what_waits_counts),
        cmocka_unit_test(a_list_of_files_counts),
        /* Last: what it leaves is more than the limits of the others. */
        cmocka_unit_test(unread_answers_are_bounded),
        cmocka_unit_test(unread_events_are_bounded),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
