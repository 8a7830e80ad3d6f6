/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon as api/service/strict.conf has it started: by a user of its own, with the two
 * capabilities that giving machines user ids takes. Skipped where this process is not root or
 * may make no namespaces.
 */
#include "api/daemon/machine/jail.h"

#include "base/process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/jail_world.h"

/* Whoever that is. */
#define SERVICE_ID 65533

/* As a service that systemd gives the two capabilities and a user of its own. */
static bool become_service(void)
{
    static const int both[] = {CAP_SETUID, CAP_SETGID};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const uint32_t mask = 1u << CAP_SETUID | 1u << CAP_SETGID;
    const struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{mask, mask, mask}};
    bool ok = prctl(PR_SET_KEEPCAPS, 1) == 0 && setgroups(0, NULL) == 0 &&
              setresgid(SERVICE_ID, SERVICE_ID, SERVICE_ID) == 0 &&
              setresuid(SERVICE_ID, SERVICE_ID, SERVICE_ID) == 0 &&
              syscall(SYS_capset, &header, caps) == 0 &&
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;

    for (int i = 0; ok && i < 2; i++)
        ok = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, both[i], 0, 0) == 0;
    return ok && prctl(PR_SET_DUMPABLE, 1) == 0;
}

/* Without newuidmap: its machines have users, and neither it nor they have the capabilities. */
static void be_service(void)
{
    struct jail *jail = open_jail(JAIL_ALL);
    struct probe probe;
    struct err err = {0};
    sigset_t term;
    int got;

    if (jail_missing(jail, JAIL_USERS))
        fail_msg("%s", jail_missing(jail, JAIL_USERS));
    assert_int_equal(status_of(getpid(), "CapPrm:", 16), 0);
    assert_int_equal(status_of(getpid(), "CapInh:", 16), 0);
    assert_int_equal(status_of(getpid(), "CapAmb:", 16), 0);
    if (start_probe(jail, &probe, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(status_of(probe.jailed.pid, "Uid:", 10), JAIL_FIRST_USER);
    assert_int_equal(status_of(probe.jailed.pid, "Gid:", 10), JAIL_FIRST_USER);
    assert_int_equal(status_of(probe.jailed.pid, "CapPrm:", 16), 0);
    assert_int_equal(status_of(probe.jailed.pid, "CapAmb:", 16), 0);
    end_probe(jail, &probe);
    /* Another one would have less: it is the daemon that has to be started again. */
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &term, NULL), 0);
    assert_int_equal(jail_check(jail, &err), 0);
    assert_int_equal(kill(find_jail(getpid()), SIGKILL), 0);
    assert_int_equal(start_probe(jail, &probe, &err), -ECHILD);
    assert_int_equal(jail_check(jail, &err), -ECHILD);
    assert_int_equal(sigwait(&term, &got), 0);
    jail_close(jail);
}

static void test_service(void **state)
{
    struct jail *jail;
    bool namespaces;
    pid_t child;

    (void)state;
    if (geteuid() != 0)
        skip();
    jail = open_jail(JAIL_ALL);
    namespaces = !jail_missing(jail, JAIL_NAMESPACES);
    jail_close(jail);
    if (!namespaces)
        skip();
    child = fork();
    if (child == 0) {
        /* Not on to the other's end of the tests, which waits for children that this one has
         * not. */
        if (setenv("CMOCKA_TEST_ABORT", "1", 1) < 0 || !become_service())
            _exit(2);
        be_service();
        _exit(0);
    }
    assert_int_equal(process_reap(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_service),
    };

    return cmocka_run_group_tests(tests, jail_world_begin, jail_world_end);
}
