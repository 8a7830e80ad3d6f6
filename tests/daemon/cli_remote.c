/* SPDX-License-Identifier: Apache-2.0 */
/* The command line against a server: over TCP, with a tenant's key, and nothing of this
 * machine. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct harness harness;
static uint16_t port;
static char printed[65536]; /* both streams of the last command */

/* In a home of its own, with the server and the key in the environment. */
static int shell(const char *command)
{
    char whole[4096];
    size_t len;
    FILE *f;
    int status;

    snprintf(whole, sizeof(whole),
             "cd '%s' && export HOME=\"$PWD/home\" PATH='%s':$PATH "
             "SKILLVM_SERVER=http://127.0.0.1:%u/ SKILLVM_API_KEY=\"$(cat key)\" && { %s ; } "
             "2>&1",
             harness.dir, SKILLVM_DIR, port, command);
    f = popen(whole, "r");
    assert_non_null(f);
    len = fread(printed, 1, sizeof(printed) - 1, f);
    printed[len] = '\0';
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const char *command, int status, const char *part)
{
    int got = shell(command);

    if (got != status || !strstr(printed, part))
        fail_msg("%s: status %d: %s; expected %d with %s", command, got, printed, status, part);
}

static int start(void **state)
{
    char address[32], command[512];
    const char *const extra[] = {"--listen", address, NULL};

    (void)state;
    unsetenv("SKILLVM_SOCKET");
    unsetenv("SKILLVM_DATA");
    unsetenv("http_proxy");
    port = harness_find_port();
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    harness_init(&harness, "boot", "restore");
    harness_start(&harness, extra);
    harness_wait_ready(&harness);
    snprintf(command, sizeof(command),
             "mkdir home; for c in 'tenant create own' 'key create --tenant own'; do "
             "skillvm --socket '%s' --data data $c >key || exit 1; done",
             harness.socket);
    return shell(command);
}

static int finish(void **state)
{
    int status;

    (void)state;
    /* Whatever was done, nothing of a daemon's was made in the home. */
    if (shell("rmdir home") != 0)
        fail_msg("the home was written to: %s", printed);
    status = harness_stop(&harness, SIGTERM);
    harness_finish(&harness);
    return status;
}

static void skills(void **state)
{
    (void)state;
    expect("skillvm skill init mine && skillvm skill push mine", 0, "mine@0.1.0  ");
    expect("skillvm skill list", 0, "mine  0.1.0");
    expect("skillvm skill show mine", 0, "# mine");
    expect("skillvm skill rm mine@latest && skillvm skill list -o json", 0, "[]\n");
    expect("skillvm skill push mine -o json", 0, "\"version\":\"0.1.0\"");
}

static void executions(void **state)
{
    (void)state;
    expect("skillvm run mine --json --env FAKE=files >result && jq -r .status result", 0,
           "success\n");
    expect("skillvm run ./mine", 0, "");
    expect("skillvm run mine -o json", 0, "\"status\":\"success\"");
    expect("skillvm run mine -o out", 2, "a folder for files is --output-dir");
    expect("skillvm exec list", 0, "mine@0.1.0");
    expect("skillvm exec show $(jq -r .execution_id result)", 0, "status     success\n");
    expect("skillvm exec logs -f $(jq -r .execution_id result)", 0, "");
    expect("skillvm exec files $(jq -r .execution_id result) -o json", 0,
           "[\"a.txt\",\"sub/b.txt\"]\n");
    expect("skillvm exec files $(jq -r .execution_id result) a.txt", 0, "alpha");
    expect("skillvm exec files $(jq -r .execution_id result) -d out && cat out/sub/b.txt", 0,
           "beta");
    expect("skillvm exec cancel $(jq -r .execution_id result)", 125, "(conflict)");
    expect("skillvm run nothing", 125, "(not_found)");
    /* Input files are uploaded, found by their names, and not left behind. */
    expect("skillvm run mine --file key -f data/in.txt=result --json", 0,
           "\"status\":\"success\"");
    expect("curl -s -H \"Authorization: Bearer $SKILLVM_API_KEY\" $SKILLVM_SERVER\"v1/files\"",
           0, "[]");
    expect("head -c 9M /dev/urandom >bulk && mkdir big && cp -r mine/* big/ && mv bulk big/ && "
           "sed -i s/mine/big/ big/SKILL.md && skillvm run ./big --file big/bulk -o json && "
           "skillvm skill push big && rm -r big",
           0, "\"status\":\"success\"");
    /* One that is refused before all of it is sent: the reason arrives. */
    expect("truncate -s 300M big && skillvm run mine --file big; rm big", 0, "(too_large)");
    expect("head -c 300M /dev/zero | skillvm run mine --file /dev/stdin", 125, "too");
    expect("skillvm run mine --file nowhere", 2, "cannot open the file \"nowhere\"");
    expect("mkdir -p plain deep/er && printf -- '---\\ndescription: d\\n---\\n' "
           ">plain/SKILL.md && "
           "echo exit >plain/main.sh && echo 12345 > deep/er/five && echo > deep/one && "
           "ln -s one deep/link && skillvm run ./plain -i 1 --file deep -f in=deep/ --json",
           0, "\"deep/er/five\":[6,");
    expect("skillvm run ./plain -i 1 --file deep -f in=deep/ --json", 0, "\"in/link\":[1,");
    expect("cd deep/er && skillvm run ../../plain -i 1 --file . --json", 0, "\"er/five\":[6,");
    expect("mkfifo deep/pipe && skillvm run mine --file deep", 2, "neither a file nor");
    expect("ln -sf nowhere deep/pipe && skillvm run mine --file deep", 2, "deep/pipe");
    expect("rm -r deep plain && skillvm run mine -f deep", 2, "cannot open the file \"deep\"");
    expect("skillvm run mine -f key -f key", 125, "key");
}

static void its_state(void **state)
{
    char line[64];

    (void)state;
    snprintf(line, sizeof(line), "server   http://127.0.0.1:%u/ (SKILLVM_SERVER)\n", port);
    expect("skillvm status", 0, line);
    expect("skillvm status -o json", 0, "\"ready\":true");
    expect("skillvm health", 0, "ready\n");
    expect("skillvm --server http://127.0.0.1:1 health", 1, "was named by --server");
    expect("skillvm --server http://127.0.0.1:1 status", 1, "not up");
    expect("skillvm --server http://127.0.0.1:1 run ./mine", 125, "no daemon listens");
}

static void this_machine_is_meant(void **state)
{
    (void)state;
    expect("skillvm --server http://h up", 2, "`skillvm up` starts a daemon on this machine");
    expect("skillvm --server http://h down", 2, "has no --server");
    expect("skillvm --server http://h doctor", 2, "has no --server");
    expect("skillvm down; rmdir -p home/.local/state/skillvm; mkdir -p home", 0,
           "SKILLVM_SERVER is left alone: `skillvm down` stops the daemon of this machine\n"
           "skillvm: not up\n");
}

static void keys(void **state)
{
    (void)state;
    expect("SKILLVM_API_KEY= skillvm skill list", 125,
           "(unauthorized); give a key with SKILLVM_API_KEY or --key @FILE\n");
    expect("SKILLVM_API_KEY= SKILLBOX_API_KEY=$(cat key) skillvm skill list", 0, "mine");
    expect("SKILLBOX_SERVER_URL=$SKILLVM_SERVER SKILLVM_SERVER= skillvm skill list", 0, "mine");
    expect("SKILLVM_API_KEY=sk-wrong skillvm run mine", 125,
           "the key is wrong: nobody has it, it was revoked, or its tenant is disabled "
           "(unauthorized); the key is that of SKILLVM_API_KEY");
    expect("SKILLVM_API_KEY= skillvm health", 0, "ready\n");
    expect("skillvm tenant list", 125,
           "operator's (unauthorized); the key is that of SKILLVM_API_KEY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skills),    cmocka_unit_test(executions),
        cmocka_unit_test(its_state), cmocka_unit_test(this_machine_is_meant),
        cmocka_unit_test(keys),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
