/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: as wide as they must be, no wider than the terminal, no control characters. */
#include "tests/unit/cmocka_all.h"

#include "api/cli/table.h"
#include "base/fd.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char printed[4096];

/* Prints a table as a terminal of this width would get it. */
static const char *print(struct table *t, size_t width)
{
    int saved = dup(STDOUT_FILENO);
    int fd = memfd_create("out", MFD_CLOEXEC);
    ssize_t n;

    fflush(stdout);
    assert_true(saved >= 0 && fd >= 0);
    dup2(fd, STDOUT_FILENO);
    assert_int_equal(table_end(t, width), 0);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    n = pread(fd, printed, sizeof(printed) - 1, 0);
    assert_true(n >= 0);
    printed[n] = '\0';
    close(fd);
    close(saved);
    return printed;
}

static const char *const header[] = {"A", "LONG", "TEXT"};

static void aligns_columns(void **state)
{
    struct table t = table_begin(header, 3);

    (void)state;
    table_add(&t, (const char *const[]){"1", NULL, "x"});
    table_add(&t, (const char *const[]){"\xc3\xa4\xc3\xb6", "a\nb\x1b[0m",
                                        "a very\xc2\x9blong text"});
    assert_string_equal(print(&t, 1000), "A   LONG     TEXT\n"
                                         "1   -        x\n"
                                         "\xc3\xa4\xc3\xb6  a b [0m  a very  long text\n");
}

static void fits_the_terminal(void **state)
{
    struct table t = table_begin(header, 3);

    (void)state;
    table_add(&t, (const char *const[]){"1", "2", "a very long text"});
    table_add(&t,
              (const char *const[]){
                  "1", "2", "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0"});
    assert_string_equal(
        print(&t, 18),
        "A  LONG  TEXT\n"
        "1  2     a very l\xe2\x80\xa6\n"
        "1  2     \xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0\xe5\xa5\xbd\xe2\x80\xa6\n");
}

/* Whatever the width, no line is wider, down to what every column needs at least. */
static void every_width_is_kept(void **state)
{
    (void)state;
    for (size_t width = 22; width < 90; width++) {
        struct table t = table_begin(header, 3);

        table_add(&t, (const char *const[]){"exec_0123456789abcdef0123456789abcdef", "12345678",
                                            "something@1.0"});
        (void)print(&t, width);
        char *line = strtok(printed, "\n");
        for (; line; line = strtok(NULL, "\n")) {
            size_t columns = mbstowcs(NULL, line, 0);
            if (columns > width)
                fail_msg("%zu columns instead of %zu: %s", columns, width, line);
            /* What names a row is the last to be cut. */
            if (width >= 37 + 2 + 6 + 2 + 6 && strncmp(line, "exec", 4) == 0)
                assert_non_null(strstr(line, "abcdef  "));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligns_columns),
        cmocka_unit_test(fits_the_terminal),
        cmocka_unit_test(every_width_is_kept),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
