/* SPDX-License-Identifier: Apache-2.0 */
/* What doctor says of the kernel, and of the layers that machines are put into. */
#include "api/cli/host_check.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void too_old(void **state)
{
    char text[512];
    (void)state;

    host_check_kernel_advice(5, 9, text, sizeof(text));
    assert_non_null(strstr(text, "5.10 is the oldest"));
    assert_non_null(strstr(text, "; from 5.14 on "));
    assert_non_null(strstr(text, "; from 6.4 on "));
    host_check_kernel_advice(4, 19, text, sizeof(text));
    assert_non_null(strstr(text, "5.10 is the oldest"));
    host_check_kernel_advice(5, 10, text, sizeof(text));
    assert_null(strstr(text, "oldest"));
}

static void gains_end_where_they_are_there(void **state)
{
    char text[512];
    (void)state;

    host_check_kernel_advice(6, 1, text, sizeof(text));
    assert_ptr_equal(strstr(text, "from 6.4 on "), text);
    host_check_kernel_advice(6, 3, text, sizeof(text));
    assert_non_null(strstr(text, "6.4"));
    host_check_kernel_advice(6, 4, text, sizeof(text));
    assert_null(strstr(text, "6.4"));
    host_check_kernel_advice(7, 0, text, sizeof(text));
    assert_string_equal(text, "");
}

static void short_buffer(void **state)
{
    char text[24];
    (void)state;

    memset(text, 'x', sizeof(text));
    host_check_kernel_advice(4, 0, text, 16);
    assert_int_equal(strlen(text), 15);
    assert_int_equal(text[16], 'x');
}

/* Of a host whose skillvm-jail says this. */
static struct host_check isolation(const char *said)
{
    static struct host_check_report report;
    static struct cli cli;
    struct host_check found = {.name = NULL};
    char path[PATH_MAX];

    (void)snprintf(cli.bin_dir, sizeof(cli.bin_dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(cli.bin_dir));
    if (said) {
        FILE *file = fopen(cli_sibling(&cli, "skillvm-jail", path), "we");

        assert_non_null(file);
        assert_true(fprintf(file, "#!/bin/sh\ncat <<'END'\n%s\nEND\n", said) > 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, 0755), 0);
    }
    host_check_examine(&cli, &report);
    for (size_t i = 0; i < report.n; i++) {
        if (strcmp(report.checks[i].name, "isolation") == 0)
            found = report.checks[i];
    }
    if (said)
        assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(cli.bin_dir), 0);
    assert_non_null(found.name);
    return found;
}

static void layers_that_are_missing_are_named(void **state)
{
    struct host_check found =
        isolation("namespaces=ok\nroot=ok\nusers=ok\nlimits=ok\nlandlock=ok");
    (void)state;

    assert_int_equal(found.level, HOST_CHECK_OK);
    assert_string_equal(found.advice, "");
    found = isolation("namespaces=ok\nroot=ok\nusers=no range in subuid\nlimits=ok");
    assert_int_equal(found.level, HOST_CHECK_NOTE);
    assert_string_equal(found.found, "no users (no range in subuid); no landlock (not said)");
    assert_non_null(strstr(found.advice, "best-effort"));
    found = isolation(NULL);
    assert_int_equal(found.level, HOST_CHECK_BAD);
    assert_non_null(strstr(found.advice, "skillvm-jail must be next to skillvm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_old),
        cmocka_unit_test(gains_end_where_they_are_there),
        cmocka_unit_test(short_buffer),
        cmocka_unit_test(layers_that_are_missing_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
