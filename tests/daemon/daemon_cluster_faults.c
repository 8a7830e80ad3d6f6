/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong with a cluster, each as its state: one real nats-server at a time. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/fd.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect harness_expect

#define JOINED       "\"state\":\"joined\",\"reason\":null"
#define CUT_OFF(why) "\"state\":\"cut_off\",\"reason\":\"" why "\""
#define KEY(name)    "$KV.skillvm_nodes." name
/* Entries: more than are written in the seconds in which each may have a line. */
#define MANY      400u
#define TRIES     4000u
#define LOAD_SAID "entry=\"left out\" of=skillvm.load key=\"x\" reason=malformed"

/* What an entry has, but the schema and the name. */
#define MEMBERS                                                                                \
    "\"instance\":\"i\",\"state\":\"joined\",\"version\":\"9\",\"cpu\":\"x\",\"kvm\":true,"    \
    "\"memory_bytes\":1,\"slots\":1,\"images\":[],\"labels\":{},\"started_ms\":1"
#define ENTRY(name) "{\"schema\":1,\"node\":\"" name "\"," MEMBERS "}"

static void end_node(struct harness *h)
{
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_finish(h);
}

static void begin(struct nats_world *w, struct harness *h)
{
    nats_begin(w, 1);
    nats_start_node(h, w, "a", "");
    nats_make(h);
    nats_wait_node(h, JOINED);
}

/* docs/fleet.md has these subjects for a node's credentials. */
static const char users[] =
    "authorization { users = [\n"
    "  { user: admin, password: secret },\n"
    "  { user: a, password: secret, permissions: {\n"
    "    publish: [ \"$JS.API.INFO\", \"$JS.FC.>\",\n"
    "      \"$JS.API.STREAM.INFO.KV_skillvm_nodes\",\n"
    "      \"$JS.API.STREAM.MSG.GET.KV_skillvm_nodes\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_nodes\", "
    "\"$JS.API.CONSUMER.*.KV_skillvm_nodes.>\",\n"
    "      \"$KV.skillvm_nodes.a\",\n"
    "      \"$JS.API.STREAM.INFO.KV_skillvm_registry\",\n"
    "      \"$JS.API.STREAM.MSG.GET.KV_skillvm_registry\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_registry\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_registry.>\",\n"
    "      \"$KV.skillvm_registry.>\",\n"
    "      \"$JS.API.STREAM.INFO.OBJ_skillvm_objects\",\n"
    "      \"$JS.API.STREAM.MSG.GET.OBJ_skillvm_objects\",\n"
    "      \"$JS.API.STREAM.PURGE.OBJ_skillvm_objects\",\n"
    "      \"$JS.API.CONSUMER.*.OBJ_skillvm_objects\",\n"
    "      \"$JS.API.CONSUMER.*.OBJ_skillvm_objects.>\",\n"
    "      \"$O.skillvm_objects.>\",\n"
    "      \"$JS.API.STREAM.INFO.KV_skillvm_executions\",\n"
    "      \"$JS.API.STREAM.MSG.GET.KV_skillvm_executions\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_executions\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_executions.>\",\n"
    "      \"$KV.skillvm_executions.>\",\n"
    "      \"$JS.API.STREAM.INFO.KV_skillvm_audit\",\n"
    "      \"$JS.API.STREAM.MSG.GET.KV_skillvm_audit\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_audit\",\n"
    "      \"$JS.API.CONSUMER.*.KV_skillvm_audit.>\",\n"
    "      \"$KV.skillvm_audit.a.*\",\n"
    "      \"$JS.API.STREAM.INFO.OBJ_skillvm_artifacts\",\n"
    "      \"$JS.API.STREAM.MSG.GET.OBJ_skillvm_artifacts\",\n"
    "      \"$JS.API.STREAM.PURGE.OBJ_skillvm_artifacts\",\n"
    "      \"$JS.API.CONSUMER.*.OBJ_skillvm_artifacts\",\n"
    "      \"$JS.API.CONSUMER.*.OBJ_skillvm_artifacts.>\",\n"
    "      \"$O.skillvm_artifacts.>\",\n"
    "      \"skillvm.run.*\", \"skillvm.live.*\", \"skillvm.load.a\" ],\n"
    "    allow_responses: true,\n"
    "    subscribe: [ \"_INBOX.>\", \"skillvm.run.*\", \"skillvm.node.a\",\n"
    "      \"skillvm.live.a\", \"skillvm.load.*\" ] } },\n"
    "  { user: nobody, password: secret, permissions: {\n"
    "    publish: [ \"$JS.API.INFO\" ], subscribe: [ \"_INBOX.>\" ] } }\n"
    "] }\n";

/* What runs at one is known to run at the other. */
static void read_what_runs(const struct harness *at, const struct harness *other)
{
    char id[38], log[96];

    nodes_submit(at,
                 "{\"skill\":\"own\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":60,"
                 "\"async\":true}",
                 id);
    snprintf(log, sizeof(log), "/v1/executions/%s/logs", id);
    nodes_wait(other, log, 200, "tick");
    nodes_wait(other, nodes_path_of(id), 200, "\"status\":\"running\"");
    nodes_cancel(other, id);
}

static void credentials_are_taken_or_not(void **state)
{
    struct nats_world w = {.more = users, .user = "admin:secret@"};
    struct harness admin = {0}, h = {0};

    (void)state;
    begin(&w, &admin);
    w.user = "a:wrong@";
    nats_start_node(&h, &w, "b", "");
    nats_wait_node(&h, CUT_OFF("credentials"));
    end_node(&h);
    w.user = "nobody:secret@";
    nats_start_node(&h, &w, "b", "");
    nats_wait_node(&h, CUT_OFF("denied"));
    end_node(&h);
    /* A node's own name is all that its credentials let it write. */
    w.user = "a:secret@";
    nats_start_node(&h, &w, "b", "");
    nats_wait_node(&h, CUT_OFF("denied"));
    end_node(&h);
    nats_wait_node(&admin, JOINED);
    assert_int_equal(harness_push(&admin, "theirs", "1.0", "print(1)"), 201);
    end_node(&admin);
    nats_start_node(&h, &w, "a", "");
    nats_wait_node(&h, JOINED);
    /* Skills of others, and its own. */
    expect(harness_get(&h, "/v1/skills/theirs/1.0"), 200, "main.py");
    assert_int_equal(harness_push(&h, "own", "1.0", "print(2)"), 201);
    expect(harness_run(&h, "{\"skill\":\"own\",\"env\":{\"FAKE\":\"files\"}}"), 200,
           "\"status\":\"success\"");
    nats_wait_node(&h, JOINED);
    harness_wait_metrics(&h, "\nskillvm_cluster_untold 0\n", true);
    harness_wait_metrics(&h, "\nskillvm_cluster_audit_untold 0\n", true);
    /* It is drained by who may ask it, and may ask nobody. */
    w.user = "admin:secret@";
    nats_start_node(&admin, &w, "c", "");
    nats_wait_node(&admin, JOINED);
    nats_wait_node(&admin, "\"node\":\"a\",\"alive\":true");
    nats_wait_node(&h, "\"node\":\"c\",\"alive\":true");
    nodes_wait(&admin, "/v1/admin/audit", 200, "\"node\":\"a\",\"target\":\"own\"");
    expect(nats_ask(&admin, "POST", "/nodes/a/drain"), 200, "\"draining\":true");
    expect(harness_request(&h, "POST", "/v1/admin/cluster/nodes/c/drain", "", "", 0), 503,
           "the credentials do not permit what a node does");
    expect(nats_ask(&admin, "DELETE", "/nodes/a/drain"), 200, "\"draining\":false");
    read_what_runs(&h, &admin);
    read_what_runs(&admin, &h);
    /* It says what its tenants have, and hears that. */
    harness_wait_metrics(&h, "\nskillvm_cluster_load_nodes 1\n", true);
    harness_wait_metrics(&admin, "\nskillvm_cluster_load_nodes 1\n", true);
    end_node(&admin);
    /* Nobody is shown a password. */
    struct answer a = harness_get(&h, "/v1/admin/cluster");
    assert_null(strstr(a.body, "secret"));
    expect(a, 200, "\"server\":\"nats://127.0.0.1:");
    end_node(&h);
    nats_end(&w);
}

static void a_server_without_jetstream_is_told(void **state)
{
    struct nats_world w = {.jetstream = ""};
    struct harness h = {0};

    (void)state;
    nats_begin(&w, 1);
    nats_start_node(&h, &w, "a", "");
    nats_wait_node(&h, CUT_OFF("no_jetstream"));
    expect(harness_request(&h, "POST", "/v1/admin/cluster", "", "", 0), 503,
           "has no JetStream");
    end_node(&h);
    nats_end(&w);
}

/* Says what servers before JetStream said, to one connection after the other. */
static pid_t start_old_server(uint16_t *ret_port)
{
    static const char hello[] = "INFO {\"server_id\":\"OLD\",\"version\":\"2.1.9\",\"proto\":1,"
                                "\"max_payload\":1048576,\"headers\":false}\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        for (;;) {
            int fd = accept(listener, NULL, NULL);
            char text[4096];
            ssize_t n;

            (void)fd_write_full(fd, hello, sizeof(hello) - 1);
            while ((n = read(fd, text, sizeof(text) - 1)) > 0) {
                text[n] = '\0';
                if (strstr(text, "PING"))
                    (void)fd_write_full(fd, "PONG\r\n", 6);
            }
            close(fd);
        }
    }
    close(listener);
    return pid;
}

static void an_old_server_is_told(void **state)
{
    struct nats_world w = {.n = 1, .servers = {{.pid = -1}}};
    pid_t server = start_old_server(&w.servers[0].port);
    struct harness h = {0};

    (void)state;
    nats_start_node(&h, &w, "a", "");
    nats_wait_node(&h, CUT_OFF("old_server"));
    end_node(&h);
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
}

/* What a hostile or broken node publishes is counted and named, and harms nobody. */
static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *key;
        const char *text;
        const char *why;
    } cases[] = {
        {"m1", "", "malformed"},
        {"m2", "[", "malformed"},
        {"m3", "{\"schema\":1}", "malformed"},
        {"m4", "{\"schema\":\"1\",\"node\":\"m4\"," MEMBERS "}", "malformed"},
        {"m5", "{\"schema\":1,\"node\":\"m5\"," MEMBERS, "malformed"},
        {"m6", "{\"schema\":1,\"node\":\"\x1b[2J\"," MEMBERS "}", "malformed"},
        {"n1", "{\"schema\":2,\"node\":\"n1\"}", "newer_schema"},
        {"w1", ENTRY("a"), "wrong_name"},
        {"w.2", ENTRY("w.2"), "wrong_name"},
    };
    struct nats_world w = {0};
    struct harness h = {0};
    char subject[300];

    (void)state;
    begin(&w, &h);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(subject, sizeof(subject), KEY("%s"), cases[i].key);
        nats_publish(&w, subject, cases[i].text, strlen(cases[i].text));
        nats_wait_refused(&h, cases[i].why, cases[i].key);
    }
    /* A name that no node can have, and is longer than any place for one. */
    snprintf(subject, sizeof(subject), KEY("%0200d"), 0);
    nats_publish(&w, subject, "{}", 2);
    nats_wait_refused(&h, "wrong_name", "");
    harness_wait_metrics(
        &h, "\nskillvm_cluster_messages_refused_total{reason=\"malformed\"} 0\n", false);
    nats_publish(&w, KEY("good"), ENTRY("good"), strlen(ENTRY("good")));
    nats_wait_node(&h, "\"node\":\"good\",\"alive\":true");
    /* The node's own key is written over: it writes what is true again. */
    nats_publish(&w, KEY("a"), "nonsense", 8);
    nats_wait_refused(&h, "malformed", "a");
    nats_wait_node(&h, JOINED);
    nats_wait_gone(&h, "good");
    nats_wait_node(&h, "\"node\":\"a\",\"alive\":true");
    end_node(&h);
    nats_end(&w);
}

/* Each bucket by itself, and never a line for each of what somebody writes on and on. */
static void what_is_left_out_is_said_in_the_log(void **state)
{
    static const struct {
        const char *subject;
        const char *said;
    } cases[] = {
        {"$KV.skillvm_nodes.m1", "of=skillvm_nodes key=\"m1\" reason=malformed"},
        {"$KV.skillvm_registry.tenant.x", "of=skillvm_registry key=\"tenant.x\" reason="},
        {"$KV.skillvm_executions.x", "of=skillvm_executions key=\"x\" reason="},
        {"$KV.skillvm_audit.a.x", "of=skillvm_audit key=\"a.x\" reason="},
    };
    struct nats_world w = {0};
    struct harness h = {0};
    char path[128], line[160], subject[64];

    (void)state;
    nats_begin(&w, 1);
    nodes_start_logged(&h, &w, "a", "", path);
    nats_make(&h);
    nats_wait_node(&h, JOINED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(line, sizeof(line), "cluster entry=\"left out\" %s", cases[i].said);
        nats_publish(&w, cases[i].subject, "[", 1);
        nodes_wait_log(path, line, 1);
    }
    /* Nobody keeps that for who does not listen yet. */
    for (unsigned i = 0; i < TRIES && nodes_count_log(path, LOAD_SAID) == 0; i++) {
        nats_tell(&w, "skillvm.load.x", "[", 1);
        usleep(20000);
    }
    nodes_wait_log(path, LOAD_SAID, 1);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(subject, sizeof(subject), KEY("many%u"), i);
        nats_publish(&w, subject, "[", 1);
    }
    snprintf(line, sizeof(line), "many%u", MANY - 1);
    nats_wait_refused(&h, "malformed", line);
    assert_true(nodes_count_log(path, "key=\"many") < MANY / 2);
    end_node(&h);
    nats_end(&w);
}

static void a_name_has_one_node(void **state)
{
    struct nats_world w = {0};
    struct harness first = {0}, second = {0};

    (void)state;
    begin(&w, &first);
    nats_start_node(&second, &w, "a", "");
    nats_wait_node(&second, CUT_OFF("name_taken"));
    nats_wait_node(&first, JOINED);
    /* Who was killed gives it up when its time is over. */
    assert_int_equal(harness_stop(&first, SIGKILL), -1);
    nats_wait_node(&second, JOINED);
    harness_finish(&first);
    end_node(&second);
    nats_end(&w);
}

static void a_deleted_bucket_is_told(void **state)
{
    struct nats_world w = {0};
    struct harness h = {0};

    (void)state;
    begin(&w, &h);
    nats_delete_bucket(&w, NATS_NODES);
    nats_wait_node(&h, CUT_OFF("bucket_gone"));
    expect(harness_get(&h, "/ready"), 503, "was deleted: make it anew");
    nats_make(&h);
    nats_wait_node(&h, JOINED);
    end_node(&h);
    nats_end(&w);
}

/* Between the end of a lease and that of an entry's time an operator may be quicker. */
static void who_is_gone_can_be_removed(void **state)
{
    struct nats_world w = {0};
    struct harness h = {0};
    int status = 404;

    (void)state;
    begin(&w, &h);
    for (unsigned i = 0; status != 204 && i < 4000; i++) {
        struct answer a;

        /* A busy machine may have missed that. */
        if (status == 404)
            nats_publish(&w, KEY("ghost"), ENTRY("ghost"), strlen(ENTRY("ghost")));
        a = harness_request(&h, "DELETE", "/v1/admin/cluster/nodes/ghost", "", "", 0);
        status = a.status;
        answer_finish(&a);
        usleep(20000);
    }
    assert_int_equal(status, 204);
    nats_wait_gone(&h, "ghost");
    expect(harness_get(&h, "/v1/admin/audit"), 200, "\"action\":\"cluster.remove\"");
    end_node(&h);
    nats_end(&w);
}

static bool maps_have(const struct harness *h, const char *name)
{
    char path[64], line[1024];
    bool has = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)h->pid);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        has = has || strstr(line, name);
    (void)fclose(f);
    return has;
}

/* The client library is of those who asked for a cluster. */
static void on_its_own_a_daemon_maps_none_of_it(void **state)
{
    struct nats_world w = {.n = 1, .servers = {{.pid = -1, .port = harness_find_port()}}};
    struct harness h = {0};

    (void)state;
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    assert_false(maps_have(&h, "libnats"));
    assert_false(maps_have(&h, "skillvm-cluster"));
    expect(harness_get(&h, "/v1/admin/cluster"), 404, "on its own");
    expect(nats_ask(&h, "POST", ""), 404, "on its own");
    end_node(&h);
    nats_start_node(&h, &w, "a", "");
    nats_wait_node(&h, CUT_OFF("unreachable"));
    assert_true(maps_have(&h, "libnats"));
    end_node(&h);
}

/* A daemon with settings that cannot be does not start, and says which. */
static void bad_settings_are_refused(void **state)
{
    static const struct {
        const char *settings;
        const char *said;
    } cases[] = {
        {"{servers: nats://x, node: a, credentials: /nonexistent}",
         "cluster.credentials: cannot read /nonexistent"},
        {"{servers: http://x}", "cluster.servers does not take"},
        {"{servers: nats://x, replicas: 2}", "it takes 1 or 3"},
        {"{servers: nats://x, node: a.b}", "cluster.node does not take"},
        {"{servers: nats://x, labels: rack}", "cluster.labels does not take"},
        {"{servers: nats://x, node: a, tls_key: /dev/null}", "go together"},
    };
    char text[4096], command[1024], config[256];
    struct harness h = {0};

    (void)state;
    harness_init(&h, "boot", "restore");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n;
        FILE *f;

        snprintf(config, sizeof(config), "cluster: %s\n", cases[i].settings);
        harness_write(&h, "bad.yaml", config);
        snprintf(command, sizeof(command),
                 "exec %s --config %s/bad.yaml --socket %s --data %s --share %s --vmm %s 2>&1",
                 SKILLVMD, h.dir, h.socket, h.data, h.dir, FAKE_VMM);
        f = popen(command, "re");
        assert_non_null(f);
        n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = '\0';
        assert_int_not_equal(pclose(f), 0);
        if (!strstr(text, cases[i].said))
            fail_msg("%s: %s", cases[i].settings, text);
    }
    harness_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_its_own_a_daemon_maps_none_of_it),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(credentials_are_taken_or_not),
        cmocka_unit_test(a_server_without_jetstream_is_told),
        cmocka_unit_test(an_old_server_is_told),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(what_is_left_out_is_said_in_the_log),
        cmocka_unit_test(a_name_has_one_node),
        cmocka_unit_test(a_deleted_bucket_is_told),
        cmocka_unit_test(who_is_gone_can_be_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
