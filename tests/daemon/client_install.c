/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libskillvm as somebody else gets it: installed below a folder of its own, found by
 * pkg-config, linked shared and static into a program in C and in C++ that speaks with a
 * daemon.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct harness harness;
static char prefix[160];
static char printed[65536];

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs it with pkg-config looking at the installed tree first; printed holds what it said. */
static int shell(const char *format, ...)
{
    char command[4096], whole[8192];
    va_list args;
    size_t len;
    FILE *f;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    snprintf(whole, sizeof(whole),
             "p='%s'; l=$(dirname \"$(find \"$p\" -name 'libskillvm.a')\"); "
             "export PKG_CONFIG_PATH=\"$l/pkgconfig\"; { %s ; } 2>&1",
             prefix, command);
    f = popen(whole, "r");
    assert_non_null(f);
    len = fread(printed, 1, sizeof(printed) - 1, f);
    printed[len] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(int status, const char *part)
{
    if (status != 0 || !strstr(printed, part))
        fail_msg("status %d: %s; expected 0 with %s", status, printed, part);
}

static int start(void **state)
{
    (void)state;
    harness_init(&harness, "boot", "restore");
    harness_start(&harness, NULL);
    harness_wait_ready(&harness);
    snprintf(prefix, sizeof(prefix), "%s/prefix", harness.dir);
    if (harness_push(&harness, "demo", "1.0", "print(1)") != 201)
        return -1;
    return shell("for part in library client; do"
                 " cmake --install '" BUILD
                 "' --component $part --prefix \"$p\" || exit; done");
}

static int finish(void **state)
{
    int status = harness_stop(&harness, SIGTERM);

    (void)state;
    (void)shell("rm -rf \"$p\"");
    harness_finish(&harness);
    return status;
}

static void is_versioned(void **state)
{
    (void)state;
    expect(shell("readlink -f \"$l/libskillvm.so\""), "/libskillvm.so.0.");
    expect(shell("objdump -p \"$l/libskillvm.so\""), "libskillvm.so.0\n");
    expect(shell("pkg-config --modversion skillvm"), SKILLVM_VERSION "\n");
}

/* What the header declares is what the libraries show: no more and no less. */
static void shows_its_header_alone(void **state)
{
    static const char compare[] =
        "grep -oE '\\bskillvm_[a-z_]+\\(' \"$p/include/skillvm.h\" | tr -d '(' | sort -u "
        ">declared"
        " && %s | awk '$2 == \"T\" || $2 == \"D\" || $2 == \"B\" || $2 == \"R\" { print $3 }' |"
        " sed 's/@.*//' | sort -u >shown && diff declared shown && echo same";
    char command[1024];
    (void)state;

    snprintf(command, sizeof(command), compare, "nm -D --defined-only \"$l/libskillvm.so\"");
    expect(shell("cd \"$p\" && %s", command), "same");
    snprintf(command, sizeof(command), compare,
             "nm --defined-only --extern-only \"$l/libskillvm.a\"");
    expect(shell("cd \"$p\" && %s", command), "same");
}

static void stands_alone(void **state)
{
    (void)state;
    expect(shell("cd / && echo '#include <skillvm.h>' | cc -std=c11 -pedantic-errors -Wall "
                 "-Wextra -Werror -fsyntax-only $(pkg-config --cflags skillvm) -x c - && "
                 "echo fine"),
           "fine");
    expect(shell("grep -c '#include \"' \"$p/include/skillvm.h\" || echo none"), "none");
}

/* The example of the documentation is a program. */
static void is_documented(void **state)
{
    (void)state;
    assert_int_equal(shell("sed -n '/^```c$/,/^```$/p' '" DOCS "/client.md' | grep -v '^```' "
                           ">\"$p/example.c\" && cc -std=c11 -Wall -Wextra -Werror " FLAGS
                           " -o \"$p/example\" \"$p/example.c\" "
                           "$(pkg-config --cflags --libs skillvm)"),
                     0);
}

static void works(const char *compiler, const char *libraries, const char *name)
{
    assert_int_equal(shell("%s -Wall -Wextra -Werror " FLAGS " -D_GNU_SOURCE "
                           "-DLIBRARY_VERSION='\"" SKILLVM_VERSION "\"' -o \"$p/%s\" "
                           "'" SOURCE "/user.c' -x none $(pkg-config --cflags skillvm) %s",
                           compiler, name, libraries),
                     0);
    expect(shell("LD_LIBRARY_PATH=\"$l\" \"$p/%s\" '%s'", name, harness.socket), "all is well");
}

static void works_in_c(void **state)
{
    (void)state;
    works("cc -std=c11", "$(pkg-config --libs skillvm)", "shared-c");
    expect(shell("objdump -p \"$p/shared-c\""), "libskillvm.so.0");
}

static void works_in_cpp(void **state)
{
    (void)state;
    if (shell("command -v c++") != 0) {
        print_message("skipped: there is no C++ compiler\n");
        skip();
    }
    works("c++ -std=c++11 -x c++", "$(pkg-config --libs skillvm)", "shared-cpp");
}

static void works_static(void **state)
{
    (void)state;
    works("cc -std=c11",
          "-Wl,-Bstatic $(pkg-config --libs skillvm) -Wl,-Bdynamic "
          "$(pkg-config --libs libcurl libcjson) -lpthread",
          "static-c");
    if (shell("objdump -p \"$p/static-c\" | grep libskillvm") == 0)
        fail_msg("it is linked shared: %s", printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_versioned),  cmocka_unit_test(shows_its_header_alone),
        cmocka_unit_test(stands_alone),  cmocka_unit_test(works_in_c),
        cmocka_unit_test(is_documented), cmocka_unit_test(works_in_cpp),
        cmocka_unit_test(works_static),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
