/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's settings: sources and their order, values, and what a wrong one is told. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/config/config_keys.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct warnings {
    unsigned n;
    char last[256];
};

static void note(void *ctx, const char *text)
{
    struct warnings *w = ctx;

    w->n++;
    snprintf(w->last, sizeof(w->last), "%s", text);
}

static struct config defaults(void)
{
    struct config c;
    struct err err = {0};

    assert_int_equal(config_defaults(&c, &err), 0);
    assert_int_equal(err.code, 0);
    return c;
}

static void defaults_are_what_the_docs_say(void **state)
{
    struct config c = defaults();

    (void)state;
    assert_string_equal(c.socket_path, "");
    assert_int_equal(c.socket_mode, 0660);
    assert_int_equal(c.max_running, 2);
    assert_int_equal(c.max_queued, 64);
    assert_int_equal(c.grace_ms, 5000);
    assert_int_equal(c.stop_timeout_ms, 10000);
    assert_int_equal(c.retention.executions_age_ms, 30ull * 86400000);
    assert_int_equal(c.retention.executions_bytes, 10ull << 30);
    assert_int_equal(c.watermarks.disk_free.bytes, 256u << 20);
    assert_int_equal(c.log_level, LOG_LEVEL_INFO);
    config_finish(&c);
    config_finish(&c);
}

static void reads_a_whole_file(void **state)
{
    static const char text[] = "# a comment\n"
                               "---\n"
                               "socket:\n"
                               "  path: /run/skillvm/skillvmd.sock\n"
                               "  mode: 0666\n"
                               "listen: {address: \"[::1]:8080\"}\n"
                               "data: '/var/lib/skill vm'\n"
                               "limits:\n"
                               "  max_running: 16\n"
                               "  max_queued: \"1000\"\n"
                               "retention:\n"
                               "  executions_age: 7d\n"
                               "  executions_bytes: 1.5GiB\n"
                               "  files_age: 36h\n"
                               "watermarks:\n"
                               "  disk_free: 5%\n"
                               "  memory_free: 1GB\n"
                               "stop_timeout: 1m30s\n"
                               "log:\n"
                               "  level: debug\n";
    struct config c = defaults();
    struct err err = {0};

    (void)state;
    assert_int_equal(config_parse(&c, text, strlen(text), "f", &err), 0);
    assert_string_equal(c.socket_path, "/run/skillvm/skillvmd.sock");
    assert_int_equal(c.socket_mode, 0666);
    assert_string_equal(c.listen_address, "[::1]:8080");
    assert_string_equal(c.data_path, "/var/lib/skill vm");
    assert_int_equal(c.max_running, 16);
    assert_int_equal(c.max_queued, 1000);
    assert_int_equal(c.retention.executions_age_ms, 7ull * 86400000);
    assert_int_equal(c.retention.executions_bytes, 3ull << 29);
    assert_int_equal(c.retention.files_age_ms, 36ull * 3600000);
    assert_int_equal(c.watermarks.disk_free.percent, 5);
    assert_int_equal(c.watermarks.memory_free.bytes, 1000000000);
    assert_int_equal(c.watermarks.memory_free.percent, 0);
    assert_int_equal(c.stop_timeout_ms, 90000);
    assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
    config_finish(&c);
}

static void an_empty_file_changes_nothing(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# nothing\n", "---\n", "--- # begins\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct config c = defaults(), same = defaults();
        struct err err = {0};

        assert_int_equal(config_parse(&c, texts[i], strlen(texts[i]), "f", &err), 0);
        for (const struct config_key *key = config_keys; key->name; key++)
            assert_true(config_key_equal(key, &c, &same));
        config_finish(&c);
        config_finish(&same);
    }
}

/* Every refusal names the file, the line, the key, and what would be right. */
static void refuses_what_is_not_allowed(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"limits:\n  max_runing: 2\n", "f:2: unknown key limits.max_runing; there are "
                                       "max_running, max_queued, connections"},
        {"dta: /x\n",
         "f:1: unknown key dta; there are socket, listen, data, share, images, vmm, "
         "jail, isolation, "
         "wheelhouse, "
         "limits, "
         "machines, snapshots, network, cluster, retention, watermarks, stop_timeout, "
         "grace, log"},
        {"limits.max_running: 2\n", "f:1: unknown key limits.max_running"},
        {"data: /x\n\ndata: /y\n", "f:3: a second time: data"},
        {"limits: {max_queued: 1}\nlimits: {max_running: 1}\n", "f:2: a second time: limits"},
        {"limits:\n  max_running: 0\n", "f:2: limits.max_running does not take \"0\": it takes "
                                        "a whole number from 1 to 256"},
        {"limits:\n  max_running: 257\n", "from 1 to 256"},
        {"limits:\n  max_running: -1\n", "from 1 to 256"},
        {"limits:\n  max_running: 2.0\n", "from 1 to 256"},
        {"limits:\n  max_running: many\n", "from 1 to 256"},
        {"limits:\n  max_running: 99999999999999999999\n", "from 1 to 256"},
        {"limits:\n  max_running: [2]\n", "f:2: one value is needed for limits.max_running"},
        {"limits:\n  max_running: {a: 2}\n", "f:2: one value is needed"},
        {"limits:\n  max_running:\n",
         "f:2: no value (write \"\" for none): limits.max_running"},
        {"limits:\n  max_running: ~\n", "no value"},
        {"limits: 3\n", "f:1: keys are needed below limits"},
        {"limits:\n", "f:1: keys are needed below limits"},
        {"data: {dir: /x}\n", "one value is needed for data"},
        {"socket: {mode: 999}\n", "f:1: socket.mode does not take \"999\": it takes octal "
                                  "permissions from 0000 to 0777"},
        {"socket: {mode: 01777}\n", "octal permissions"},
        {"retention: {files_age: 7 days}\n",
         "f:1: retention.files_age does not take \"7 days\": "
         "it takes a duration such as 30s, 12h or 7d, from "
         "0s to 3650d"},
        {"retention: {files_age: 3651d}\n", "a duration"},
        {"retention: {files_age: 99999999999999999999d}\n", "a duration"},
        {"retention: {executions_bytes: lots}\n", "a size such as 512MiB or 10GiB, from 0 to "
                                                  "1024TiB"},
        {"watermarks: {disk_free: 101%}\n", "f:1: watermarks.disk_free does not take \"101%\": "
                                            "it takes a size such as 512MiB, or a percentage"},
        {"watermarks: {disk_free: '%'}\n", "a percentage"},
        {"watermarks: {disk_free: 1234567890%}\n", "a percentage"},
        {"grace: 0s\n", "from 1s to 10m"},
        {"machines: {reuse: all}\n", "it takes never, skill or tenant"},
        {"machines: {reuse: \"\"}\n", "it takes never, skill or tenant"},
        {"machines: {parked: 257}\n", "from 0 to 256"},
        {"snapshots: {scope: skill}\n", "it takes shared or tenant"},
        {"isolation: none\n", "it takes best-effort or strict"},
        {"cluster: {servers: 'http://a'}\n", "it takes up to 8 addresses such as nats://"},
        {"cluster: {servers: 'nats://'}\n", "cluster.servers does not take"},
        {"cluster: {servers: 'nats://a:0'}\n", "cluster.servers does not take"},
        {"cluster: {servers: 'nats://a:65536'}\n", "cluster.servers does not take"},
        {"cluster: {servers: 'nats://a/b'}\n", "cluster.servers does not take"},
        {"cluster: {servers: 'nats://[::1:4222'}\n", "cluster.servers does not take"},
        {"cluster: {servers: 'nats://a nats://b nats://c nats://d nats://e nats://f nats://g "
         "nats://h nats://i'}\n",
         "cluster.servers does not take"},
        {"cluster: {replicas: 2}\n", "it takes 1 or 3"},
        {"cluster: {node: a.b}\n", "it takes at most 64 letters, digits, - and _"},
        {"cluster: {labels: rack}\n", "it takes up to 16 labels such as rack=a7"},
        {"cluster: {labels: a=1 a=2}\n", "cluster.labels does not take"},
        {"cluster: {labels: a=b=c}\n", "cluster.labels does not take"},
        {"log: {level: loud}\n", "it takes error, warn, info or debug"},
        {"listen: {address: 8080}\n", "an address and port such as 127.0.0.1:8080"},
        {"listen: {address: localhost:8080}\n", "an address and port"},
        {"listen: {address: '127.0.0.1:65536'}\n", "an address and port"},
        {"listen: {address: '[127.0.0.1]:80'}\n", "an address and port"},
        {"listen: {address: '::1:80'}\n", "an address and port"},
        {"listen: {public_url: 'skills.example.org'}\n", "an URL such as https://"},
        {"listen: {public_url: 'https://'}\n", "an URL such as https://"},
        {"listen: {public_url: 'https://h/'}\n", "an URL such as https://"},
        {"listen: {public_url: 'https://h?\"x'}\n", "an URL such as https://"},
        {"listen: {address: '[]:80'}\n", "an address and port"},
        {"- data\n", "f:1: keys are needed"},
        {"data\n", "f:1: keys are needed"},
        {"[a]: 1\n", "f:1: a key is not a word"},
        {"data: /x\n---\ndata: /y\n", "f:2: a second document begins"},
        {"  \n # c\ndata: /x\n...\n", "f:4: a second document begins"},
        {"data: *x\n", "f:1: aliases"},
        {"data: \"\\0\"\n", "f:1: a value holds a NUL"},
        {"data: [\n", "f:2: "},
        {"\tdata: x\n", "f:1: "},
        {"data: \xff\n", "f"},
        {"data: \"\\u2028\"\n", "printable text"},
        {"data: \"\\n\"\n", "printable text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config c = defaults();
        struct err err = {0};

        if (config_parse(&c, bad[i].text, strlen(bad[i].text), "f", &err) != -EINVAL ||
            !strstr(err.message, bad[i].says))
            fail_msg("%s: \"%s\", expected \"%s\"", bad[i].text, err.message, bad[i].says);
        config_finish(&c);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void the_later_source_wins(void **state)
{
    char file[] = "/tmp/skillvm-config.XXXXXX";
    const char *const environment[] = {"PATH=/bin", "SKILLVM_LIMITS_MAX_QUEUED=30",
                                       "SKILLVM_STOP_TIMEOUT=3", "SKILLVM_SHARE=", NULL};
    const struct config_override overrides[] = {{"stop_timeout", "4", "--stop-timeout"}};
    const struct config_sources sources = {
        .file = file, .environment = environment, .overrides = overrides, .n_overrides = 1};
    struct warnings warnings = {0};
    struct config c;
    struct err err = {0};

    (void)state;
    close(mkstemp(file));
    write_file(file, "limits: {max_running: 20, max_queued: 20}\nstop_timeout: 2s\n"
                     "share: /from/file\n");
    assert_int_equal(config_read(&sources, note, &warnings, &c, &err), 0);
    assert_int_equal(c.max_running, 20);
    assert_int_equal(c.max_queued, 30);
    assert_int_equal(c.stop_timeout_ms, 4000);
    assert_int_equal(c.grace_ms, 5000);
    assert_string_equal(c.share_path, "/from/file");
    assert_int_equal(warnings.n, 0);
    config_finish(&c);
    unlink(file);
}

static void the_origin_of_a_wrong_value_is_named(void **state)
{
    const char *const environment[] = {"SKILLVM_LIMITS_MAX_RUNNING=none", NULL};
    const struct config_override overrides[] = {{"grace", "x", "--grace"}};
    struct config_sources sources = {.environment = environment};
    struct config c = {0};
    struct err err = {0}, more = {0}, absent = {0};

    (void)state;
    assert_int_equal(config_read(&sources, note, NULL, &c, &err), -EINVAL);
    assert_string_equal(err.message, "SKILLVM_LIMITS_MAX_RUNNING: limits.max_running does not "
                                     "take \"none\": it takes a whole number from 1 to 256");
    sources = (struct config_sources){.overrides = overrides, .n_overrides = 1};
    assert_int_equal(config_read(&sources, note, NULL, &c, &more), -EINVAL);
    assert_non_null(strstr(more.message, "--grace: grace does not take \"x\""));
    sources = (struct config_sources){.file = "/nonexistent/skillvmd.yaml"};
    assert_int_equal(config_read(&sources, note, NULL, &c, &absent), -ENOENT);
    assert_non_null(strstr(absent.message, "cannot open /nonexistent/skillvmd.yaml"));
    assert_null(c.socket_path);
}

static void unknown_variables_are_a_warning(void **state)
{
    const char *const environment[] = {"SKILLVM_SOCKET=/x",
                                       "SKILLVM_SERVER=http://x",
                                       "SKILLVM_HOST=kvm",
                                       "SKILLVM_API_KEY=sk-x",
                                       "SKILLVM_TEST_SOURCE=.",
                                       "SKILLVM_CONFIG=/x",
                                       "SKILLVM_SHARE_IMAGE=00",
                                       "SKILLVM_MAX_RUNNING=4",
                                       "SKILLVMX=1",
                                       "NOEQUALS",
                                       "SKILLVM_LIMITS_MAX_QUEUED=",
                                       NULL};
    const struct config_sources sources = {.environment = environment};
    struct warnings warnings = {0};
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(config_read(&sources, note, &warnings, &c, &err), 0);
    assert_int_equal(warnings.n, 1);
    assert_string_equal(warnings.last,
                        "the variable SKILLVM_MAX_RUNNING is no setting and was ignored");
    assert_int_equal(c.max_queued, 64);
    config_finish(&c);
}

static void what_is_written_reads_the_same(void **state)
{
    static const struct config_override odd[] = {
        {"socket.path", "/run/a \"b\"\\c: #d", ""},
        {"data", "/d\xc3\xa4t\xc3\xa4", ""},
        {"watermarks.disk_free", "7%", ""},
        {"watermarks.memory_free", "0", ""},
        {"retention.files_age", "0", ""},
        {"retention.executions_bytes", "12345", ""},
        {"retention.executions_age", "90m", ""},
        {"stop_timeout", "1500ms", ""},
        {"socket.mode", "7", ""},
        {"log.level", "warn", ""},
    };
    const struct config_sources sources = {.overrides = odd,
                                           .n_overrides = sizeof(odd) / sizeof(odd[0])};
    struct buf text = buf_init(65536);
    struct config c, again = defaults();
    struct err err = {0};

    (void)state;
    assert_int_equal(config_read(&sources, note, NULL, &c, &err), 0);
    assert_int_equal(config_write(&c, &text), 0);
    assert_non_null(buf_cstr(&text));
    assert_non_null(strstr(buf_cstr(&text), "  executions_age: 90m\n"));
    assert_non_null(strstr(buf_cstr(&text), "  disk_free: 7%\n"));
    if (config_parse(&again, (const char *)text.data, text.len, "f", &err) < 0)
        fail_msg("%s in\n%s", err.message, buf_cstr(&text));
    for (const struct config_key *key = config_keys; key->name; key++) {
        if (!config_key_equal(key, &c, &again))
            fail_msg("%s differs in\n%s", key->name, buf_cstr(&text));
    }
    config_finish(&c);
    config_finish(&again);
    buf_finish(&text);
}

/* A key without its section could not be set by a file; one without words is in no manual. */
static void every_key_has_its_section_and_words(void **state)
{
    (void)state;
    for (const struct config_key *key = config_keys; key->name; key++) {
        const struct config_section *section = config_sections;
        size_t len = strcspn(key->name, ".");

        assert_true(key->text && *key->text && key->initial);
        assert_int_equal(key->option != NULL, key->takes != NULL);
        if (key->name[len] == '\0')
            continue;
        while (section->name &&
               (strlen(section->name) != len || strncmp(section->name, key->name, len) != 0))
            section++;
        if (!section->name)
            fail_msg("%s has no section", key->name);
    }
}

static void amounts_are_of_a_whole(void **state)
{
    const struct config_amount bytes = {.bytes = 100}, half = {.percent = 50},
                               all = {.percent = 100};

    (void)state;
    assert_int_equal(config_amount_of(&bytes, 10), 100);
    assert_int_equal(config_amount_of(&half, 11), 5);
    assert_true(config_amount_of(&all, UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_what_the_docs_say),
        cmocka_unit_test(reads_a_whole_file),
        cmocka_unit_test(an_empty_file_changes_nothing),
        cmocka_unit_test(refuses_what_is_not_allowed),
        cmocka_unit_test(the_later_source_wins),
        cmocka_unit_test(the_origin_of_a_wrong_value_is_named),
        cmocka_unit_test(unknown_variables_are_a_warning),
        cmocka_unit_test(what_is_written_reads_the_same),
        cmocka_unit_test(every_key_has_its_section_and_words),
        cmocka_unit_test(amounts_are_of_a_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
