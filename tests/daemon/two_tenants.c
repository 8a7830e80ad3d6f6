/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/two_tenants.h"

#include "tests/unit/cmocka_all.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const struct things nothing = {"skill-omega",
                               "file_00000000000000000000000000000000",
                               "exec_00000000000000000000000000000000",
                               "exec_00000000000000000000000000000001",
                               "key_00000000000000000000000000000000",
                               "chat-omega"};

void fill_in(const char *text, const struct things *t, char *ret, size_t size)
{
    const struct {
        const char *name;
        const char *value;
    } names[] = {{"{skill}", t->skill}, {"{file}", t->file}, {"{ended}", t->ended},
                 {"{live}", t->live},   {"{key}", t->key},   {"{session}", t->session}};
    size_t used = 0;

    while (*text && used + 1 < size) {
        size_t i = 0, n = sizeof(names) / sizeof(names[0]);

        while (i < n && strncmp(text, names[i].name, strlen(names[i].name)) != 0)
            i++;
        if (i == n) {
            ret[used++] = *text++;
            continue;
        }
        used += (size_t)snprintf(ret + used, size - used, "%s", names[i].value);
        text += strlen(names[i].name);
    }
    assert_true(used < size);
    ret[used] = '\0';
}

static int connect_tcp(const struct place *p)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&p->tcp, sizeof(p->tcp)), 0);
    return fd;
}

struct answer ask(const struct place *p, const char *headers, const char *method,
                  const char *path, const char *type, const void *body, size_t len)
{
    _cleanup_fd_ int fd = connect_tcp(p);
    char head[2048];
    int n = snprintf(head, sizeof(head),
                     "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s%s%s"
                     "Content-Length: %zu\r\n\r\n",
                     method, path, headers, type ? "Content-Type: " : "", type ? type : "",
                     type ? "\r\n" : "", len);

    assert_true(n > 0 && (size_t)n < sizeof(head));
    assert_int_equal(fd_write_full(fd, head, (size_t)n), 0);
    /* Who is refused is not always read to his end. */
    if (len > 0)
        (void)fd_write_full(fd, body, len);
    return harness_read_answer(fd);
}

void bearer(const char *key, char ret[160])
{
    snprintf(ret, 160, "Authorization: Bearer %s\r\n", key);
}

void take(const struct answer *a, const char *key, char *ret, size_t size)
{
    char quoted[32];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
    at = a->body ? strstr(a->body, quoted) : NULL;
    if (!at) {
        fail_msg("no %s in %d %s", key, a->status, a->body);
        return;
    }
    at += strlen(quoted);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

struct answer ask_admin(const struct place *p, const char *method, const char *path,
                        const char *json)
{
    return harness_request(&p->h, method, path, "Content-Type: " JSON "\r\n", json,
                           strlen(json));
}

void make_key(const struct place *p, const char *json, char ret_key[80], char ret_id[64])
{
    struct answer a = ask_admin(p, "POST", "/v1/admin/keys", json);

    assert_int_equal(a.status, 201);
    take(&a, "key", ret_key, 80);
    assert_int_equal(strlen(ret_key), 67);
    if (ret_id)
        take(&a, "id", ret_id, 64);
    answer_finish(&a);
}

static void make_keys(struct place *p)
{
    char path[128], id[64];

    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"first", "second", "third"};
        char json[64];

        snprintf(json, sizeof(json), "{\"name\":\"%s\"}", names[i]);
        harness_expect(ask_admin(p, "POST", "/v1/admin/tenants", json), 201, names[i]);
    }
    make_key(p, "{\"tenant\":\"first\",\"name\":\"" MARK "\"}", p->first, p->things.key);
    make_key(p, "{\"tenant\":\"second\"}", p->second, NULL);
    make_key(p, "{\"tenant\":\"third\"}", p->disabled, NULL);
    make_key(p, "{\"role\":\"operator\"}", p->operator, NULL);
    make_key(p, "{\"tenant\":\"first\"}", p->revoked, id);
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    harness_expect(ask_admin(p, "DELETE", path, ""), 204, "");
    harness_expect(ask_admin(p, "PATCH", "/v1/admin/tenants/third", "{\"disabled\":true}"), 200,
                   "\"disabled\":true");
}

static void run(const struct place *p, const char *json, int status, char ret_id[64])
{
    char headers[160];
    struct answer a;

    bearer(p->first, headers);
    a = ask(p, headers, "POST", "/v1/executions", JSON, json, strlen(json));
    if (a.status != status)
        fail_msg("%d %s", a.status, a.body);
    take(&a, "execution_id", ret_id, 64);
    answer_finish(&a);
}

/* What the first tenant has. */
static void make_things(struct place *p)
{
    struct things *t = &p->things;
    char headers[160];
    char *skill;
    size_t len;
    struct answer a;

    snprintf(t->skill, sizeof(t->skill), "skill-" MARK);
    snprintf(t->session, sizeof(t->session), "chat-" MARK);
    bearer(p->first, headers);
    skill = harness_skill(t->skill, "1", "print(1)", &len);
    a = ask(p, headers, "POST", "/v1/skills", RAW, skill, len);
    free(skill);
    harness_expect(a, 201, t->skill);
    a = ask(p, headers, "POST", "/v1/files?name=" MARK ".txt", RAW, "content " MARK, 13);
    assert_int_equal(a.status, 201);
    take(&a, "id", t->file, sizeof(t->file));
    answer_finish(&a);
    run(p,
        "{\"skill\":\"skill-" MARK "\",\"env\":{\"FAKE\":\"files\"},"
        "\"idempotency_key\":\"k\",\"session_id\":\"chat-" MARK "\"}",
        200, t->ended);
    run(p,
        "{\"skill\":\"skill-" MARK "\",\"env\":{\"FAKE\":\"ticks\"},\"async\":true,"
        "\"timeout\":600}",
        202, t->live);
}

struct sockaddr_in two_tenants_port(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(harness_find_port()),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

struct answer ask_as(const struct place *p, const char *key, const char *more,
                     const char *method, const char *path, const char *json)
{
    char headers[400], auth[160];

    bearer(key, auth);
    snprintf(headers, sizeof(headers), "%s%s", auth, more);
    return ask(p, headers, method, path, *json ? JSON : NULL, json, strlen(json));
}

void two_tenants_make(struct place *p)
{
    make_keys(p);
    make_things(p);
    p->skill = harness_skill("another", "1", "print(1)", &p->skill_len);
}

void two_tenants_copy(struct place *p, const struct place *from, const char *skill)
{
    memcpy(p->first, from->first, sizeof(p->first));
    memcpy(p->second, from->second, sizeof(p->second));
    memcpy(p->revoked, from->revoked, sizeof(p->revoked));
    memcpy(p->disabled, from->disabled, sizeof(p->disabled));
    memcpy(p->operator, from->operator, sizeof(p->operator));
    p->things = from->things;
    p->skill = harness_skill(skill, "1", "print(1)", &p->skill_len);
}

void two_tenants_start(struct place *ret)
{
    char listen[64];
    const char *const extra[] = {"--listen", listen, "--max-running", "4", NULL};

    *ret = (struct place){.tcp = two_tenants_port()};
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", ntohs(ret->tcp.sin_port));
    harness_init(&ret->h, "boot", "restore");
    harness_start(&ret->h, extra);
    harness_wait_ready(&ret->h);
    two_tenants_make(ret);
}

void two_tenants_finish(struct place *p)
{
    free(p->skill);
    harness_finish(&p->h);
}
