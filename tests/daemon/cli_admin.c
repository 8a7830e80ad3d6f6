/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm tenant` and `skillvm key` against a daemon, keys in use, and a daemon's settings. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct harness harness;
static char printed[65536]; /* both streams of the last command */

static int skillvm(const char *arguments)
{
    char command[2048];
    size_t len;
    FILE *f;
    int status;

    snprintf(command, sizeof(command),
             "cd '%s' && PATH='%s':$PATH SKILLVM_SOCKET='%s' && "
             "export SKILLVM_SOCKET && { skillvm %s ; } 2>&1",
             harness.dir, SKILLVM_DIR, harness.socket, arguments);
    f = popen(command, "r");
    assert_non_null(f);
    len = fread(printed, 1, sizeof(printed) - 1, f);
    printed[len] = '\0';
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const char *arguments, int status, const char *part)
{
    int got = skillvm(arguments);

    if (got != status || !strstr(printed, part))
        fail_msg("skillvm %s: status %d: %s; expected %d with %s", arguments, got, printed,
                 status, part);
}

static int start(void **state)
{
    (void)state;
    unsetenv("SKILLVM_SERVER");
    unsetenv("SKILLVM_API_KEY");
    harness_init(&harness, "boot", "restore");
    harness_start(&harness, NULL);
    harness_wait_ready(&harness);
    return 0;
}

static int finish(void **state)
{
    int status = harness_stop(&harness, SIGTERM);

    (void)state;
    harness_finish(&harness);
    return status;
}

static void tenants_come_and_go(void **state)
{
    (void)state;
    expect("tenant create acme --max-running 4 --cpu-per-day 2h --storage 5Gi", 0,
           "max running  4\n");
    assert_non_null(strstr(printed, "CPU per day  2 h 0 m\n"));
    assert_non_null(strstr(printed, "storage      5.0 GiB\n"));
    assert_non_null(strstr(printed, "max queued   no limit\n"));
    assert_non_null(strstr(printed, "state        active\n"));
    expect("tenant create acme", 125, "(conflict)");
    expect("tenant list", 0, "TENANT ");
    assert_non_null(strstr(printed, "  acme\n"));
    assert_non_null(strstr(printed, "default  "));
    expect("tenant list -o json", 0, "{\"tenants\":[{\"id\":\"");
    expect("tenant show acme -o json", 0, "\"cpu_ms_per_day\":7200000");
    expect("tenant set acme --storage none --weight 20 --name apex", 0, "name         apex\n");
    assert_non_null(strstr(printed, "storage      no limit\n"));
    assert_non_null(strstr(printed, "weight       20\n"));
    assert_non_null(strstr(printed, "max running  4\n"));
    assert_non_null(strstr(printed, "network      as the daemon has it\n"));
    expect("tenant set apex --network-policy 'API.example.com *.example.org:8443'", 0,
           "network      api.example.com *.example.org:8443\n");
    expect("tenant set apex --network-policy https://x", 125, "without https://");
    expect("tenant set apex --network-policy declared", 0, "network      declared\n");
    expect("tenant set apex --network-policy none", 0, "network      as the daemon has it\n");
    expect("tenant set apex --disable", 0, "state        disabled\n");
    expect("tenant set apex --enable", 0, "state        active\n");
    expect("tenant set apex --images python,data", 0, "images       python, data\n");
    expect("tenant show apex -o json", 0, "\"images\":[\"python\",\"data\"]");
    expect("tenant set apex --images a,,b", 125, "must be an array of names of images");
    expect("tenant set apex --images none", 0, "images       no limit\n");
    expect("tenant rm apex", 0, "");
    expect("tenant show apex", 125, "(not_found)");
    expect("tenant rm default", 125, "(conflict)");
}

static void many_are_listed_page_by_page(void **state)
{
    (void)state;
    for (int i = 0; i < 205; i++) {
        char body[32];
        int len = snprintf(body, sizeof(body), "{\"name\":\"t%d\"}", i);

        harness_expect(harness_request(&harness, "POST", "/v1/admin/tenants",
                                       "Content-Type: application/json\r\n", body, (size_t)len),
                       201, "ten_");
    }
    expect("tenant list | grep -c ' t[0-9]*$'", 0, "205\n");
    expect("tenant list -o json | jq '.tenants | length'", 0, "206\n");
}

static void keys_speak_for_a_tenant(void **state)
{
    (void)state;
    expect("tenant create own", 0, "");
    expect("key create --tenant own --name ci 2>said >own.key; cat said", 0,
           "a tenant's, of tenant ten_");
    expect("version; cat own.key", 0, "\nsk-");
    expect("key list --tenant own", 0, "  active  -");
    assert_non_null(strstr(printed, "  ci\n"));
    assert_null(strstr(printed, "sk-"));
    expect("skill init mine && skillvm skill push mine --key @own.key", 0, "mine@0.1.0");
    expect("skill list --key @own.key", 0, "mine  0.1.0");
    if (skillvm("skill list") != 0 || strstr(printed, "mine"))
        fail_msg("another tenant's skill is listed: %s", printed);
    expect("skill show mine", 125, "(not_found)");
    expect("--as own skill show mine", 0, "# mine");
    expect("skill list --as own", 0, "mine  0.1.0");
    expect("skill list --as nobody", 125,
           "there is no tenant \"nobody\" (not_found); there is own, default\n");
    expect("skill show none --as own", 125, "there is no skill named none (not_found)");
    assert_null(strstr(printed, "no tenant"));
    expect("skill list --as nobody --key @own.key", 125, "(forbidden)\n");
    expect("skill list --as default --key @own.key", 125, "(forbidden)");
    expect("tenant list --key @own.key", 125,
           "this is the operator's (unauthorized); the key is that of --key");
    expect("version; SKILLVM_API_KEY=sk-none skillvm skill list", 125,
           "the key is wrong: nobody has it, it was revoked, or its tenant is disabled "
           "(unauthorized); the key is that of SKILLVM_API_KEY");
    expect("version; skillvm skill list --key \"$(cat own.key)\"", 0,
           "warning: others on this machine can see a key");
    expect("version; skillvm key revoke "
           "\"$(skillvm key list --tenant own -o json | jq -r '.keys[0].id')\"",
           0, "");
    expect("key list --tenant own", 0, "  revoked  ");
    expect("skill list --key @own.key", 125, "(unauthorized)");
    expect("key revoke key_none", 125, "");
    expect("tenant rm own", 0, "");
}

static void operators_have_keys(void **state)
{
    (void)state;
    expect("key create --role operator 2>&1 >op.key", 0, "an operator's");
    expect("tenant list --key @op.key", 0, "default");
    expect("key create --role operator -o json", 0, "\"key\":\"sk-");
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    expect("tenant", 2, "say what to do");
    expect("tenant create", 2, "no fewer than 1");
    expect("tenant create x --max-running many", 2, "--max-running many: use a number");
    expect("tenant create x --cpu-per-day 5x", 2, "such as 30s");
    expect("tenant create x --storage lots", 2, "such as 512Mi");
    expect("tenant create x --weight 101", 125, "weight");
    expect("tenant set default", 2, "say what to set");
    expect("tenant set default --enable --disable", 2, "not both");
    expect("tenant show ten_nobody", 125, "(not_found)");
    expect("key create --role king", 2, "tenant or operator");
    expect("key create --tenant nobody", 125, "nobody");
    expect("key list --weight 3", 2, "`skillvm key list` has no option --weight");
}

/* Before anything is started for them, a host of its own above all. */
static void bad_settings_are_told_with_their_line(void **state)
{
    (void)state;
    expect("version && printf 'limits:\\n  max_running: 0\\n' >bad.yaml", 0, "");
    expect(
        "up --config bad.yaml --host soft", 125,
        "/bad.yaml:2: limits.max_running does not take \"0\": it takes a whole number from 1");
    assert_non_null(strstr(printed, "/bad.yaml\" are no good\n"));
    assert_null(strstr(printed, "software host"));
    /* Nor by what whoever started it ignores. */
    expect("version && env --ignore-signal=CHLD skillvm up --config bad.yaml --host soft", 125,
           "/bad.yaml\" are no good\n");
    /* Not by what this process was told. */
    expect("version && printf 'limits:\\n  max_running: 3\\n' >good.yaml", 0, "");
    (void)setenv("SKILLVM_LIMITS_MAX_QUEUED", "none", 1);
    expect("up --config good.yaml", 125, "already up (process ");
    (void)unsetenv("SKILLVM_LIMITS_MAX_QUEUED");
}

static void what_cannot_run_is_told_before_a_host_boots(void **state)
{
    (void)state;
    expect(
        "version && mkdir -p typed && printf -- '---\\nname: typed\\ndescription: x\\n---\\n' "
        ">typed/SKILL.md && echo 'x' >typed/main.ts && rm -f typed/main.py",
        0, "");
    expect("--data off --socket off/sock run typed --host soft", 125,
           "the skill has nothing to run");
    assert_null(strstr(printed, "software host"));
    expect("version && echo 'print(1)' >typed/main.py", 0, "");
    expect("--data off --socket off/sock run typed --host soft --script other.py", 125,
           "\"other.py\"");
    assert_null(strstr(printed, "software host"));
    expect("version && test ! -e off/softhost", 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_come_and_go),
        cmocka_unit_test(keys_speak_for_a_tenant),
        cmocka_unit_test(operators_have_keys),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(bad_settings_are_told_with_their_line),
        cmocka_unit_test(what_cannot_run_is_told_before_a_host_boots),
        cmocka_unit_test(many_are_listed_page_by_page),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
