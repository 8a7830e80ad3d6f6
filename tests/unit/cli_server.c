/* SPDX-License-Identifier: Apache-2.0 */
/* Which daemon and which key: options, then variables, in the documented order. */
#include "tests/unit/cmocka_all.h"

#include "api/cli/cli.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/cli-server-XXXXXX";
static char file[64];

static const char *const names[] = {"SKILLVM_SOCKET", "SKILLVM_SERVER", "SKILLVM_API_KEY",
                                    "SKILLBOX_SERVER_URL", "SKILLBOX_API_KEY"};

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    return setenv("SKILLVM_DATA", dir, 1);
}

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(file, sizeof(file), "%s/key", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(dir);
}

static void finds(struct cli_globals globals, const char *server, const char *from,
                  const char *key)
{
    struct cli cli = {0};
    struct err err = {0};

    if (cli_find_daemon(&cli, &globals, &err))
        fail_msg("%s", err.message);
    assert_string_equal(cli.server, server);
    assert_string_equal(cli.key, key);
    if (*server) {
        assert_string_equal(cli.server_from, from);
        assert_string_equal(cli.socket_path, "");
        assert_string_equal(cli.data_dir, "");
    } else {
        assert_string_equal(cli.socket_path, from);
    }
}

static void servers(void **state)
{
    char own[80];

    (void)state;
    snprintf(own, sizeof(own), "%s/skillvm.sock", dir);
    finds((struct cli_globals){0}, "", own, "");
    setenv("SKILLBOX_SERVER_URL", "http://c", 1);
    finds((struct cli_globals){0}, "http://c", "SKILLBOX_SERVER_URL", "");
    setenv("SKILLVM_SERVER", "http://b", 1);
    finds((struct cli_globals){0}, "http://b", "SKILLVM_SERVER", "");
    setenv("SKILLVM_SERVER", "", 1);
    finds((struct cli_globals){0}, "http://c", "SKILLBOX_SERVER_URL", "");
    setenv("SKILLVM_SERVER", "http://b", 1);
    setenv("SKILLVM_SOCKET", "/s", 1);
    finds((struct cli_globals){0}, "", "/s", "");
    finds((struct cli_globals){.server = "http://a"}, "http://a", "--server", "");
    finds((struct cli_globals){.socket_path = "/t"}, "", "/t", "");
    finds((struct cli_globals){.data_dir = dir}, "", own, "");
    finds((struct cli_globals){.data_dir = dir, .socket_path = "/t"}, "", "/t", "");
    unsetenv("SKILLVM_SOCKET");
    finds((struct cli_globals){.socket_path = "/t"}, "", "/t", "");
    finds((struct cli_globals){.data_dir = dir}, "", own, "");
}

static void keys(void **state)
{
    const struct cli_globals server = {.server = "http://a"};
    char at[80];
    int fd;

    (void)state;
    setenv("SKILLBOX_API_KEY", "sk-c", 1);
    finds(server, "http://a", "--server", "sk-c");
    finds((struct cli_globals){.socket_path = "/s"}, "", "/s", "");
    setenv("SKILLVM_API_KEY", "sk-b", 1);
    finds(server, "http://a", "--server", "sk-b");
    finds((struct cli_globals){.socket_path = "/s"}, "", "/s", "sk-b");
    finds((struct cli_globals){.socket_path = "/s", .key = "sk-a"}, "", "/s", "sk-a");

    fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_full(fd, "sk-file\n", 8), 0);
    close(fd);
    snprintf(at, sizeof(at), "@%s", file);
    finds((struct cli_globals){.server = "http://a", .key = at}, "http://a", "--server",
          "sk-file");
}

static void refuses(struct cli_globals globals, const char *part)
{
    struct cli cli = {0};
    struct err err = {0};

    assert_true(cli_find_daemon(&cli, &globals, &err) < 0);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_null(strstr(err.message, "sk-"));
}

static void nonsense(void **state)
{
    char key[2 * CLI_KEY_MAX], at[80];

    (void)state;
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    refuses((struct cli_globals){.server = "http://a", .socket_path = "/s"}, "not both");
    refuses((struct cli_globals){.server = "http://a", .key = key}, "too long");
    refuses((struct cli_globals){.server = "http://a", .key = "@/nowhere/key"}, "/nowhere/key");
    snprintf(at, sizeof(at), "@%s", dir);
    refuses((struct cli_globals){.server = "http://a", .key = at}, "cannot read");
    snprintf(at, sizeof(at), "@%s", file);
    assert_int_equal(truncate(file, 0), 0);
    refuses((struct cli_globals){.server = "http://a", .key = at}, "does not hold a key");
    assert_int_equal(truncate(file, 5000), 0);
    refuses((struct cli_globals){.server = "http://a", .key = at}, "does not hold a key");
}

/* As of a timer: the user's home is where it is without the variable. */
static void without_home(void **state)
{
    const struct passwd *user = getpwuid(getuid());
    struct cli cli = {0};
    struct err err = {0};
    char expected[256];

    (void)state;
    assert_non_null(user);
    unsetenv("SKILLVM_DATA");
    unsetenv("SKILLVM_IMAGES");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    if (cli_find_images(&cli, NULL, &err) < 0)
        fail_msg("%s", err.message);
    snprintf(expected, sizeof(expected), "%s/.local/state/skillvm/images", user->pw_dir);
    assert_string_equal(cli.images_dir, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(servers, set_up),
        cmocka_unit_test_setup(keys, set_up),
        cmocka_unit_test_setup(nonsense, set_up),
        cmocka_unit_test_setup(without_home, set_up),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
