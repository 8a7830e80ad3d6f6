/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are, and how an interrupt is noticed. */
#include "api/cli/cli.h"
#include "api/cli/show.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_say(const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fputs("skillvm: ", stderr);
    show_text(stderr, text);
    fputc('\n', stderr);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    if (interrupted)
        _exit(128 + number);
    interrupted = number;
}

void cli_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int cli_interrupted(void)
{
    return interrupted;
}

/* Makes the path of what in out. 0, or -ENAMETOOLONG with err. */
__attribute__((format(printf, 5, 6))) static int put(char *out, size_t size, const char *what,
                                                     struct err *err, const char *format, ...)
{
    char text[PATH_MAX + 32];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof(text) || n >= (int)size)
        return err_set(err, ENAMETOOLONG, "the path of the %s is over %zu bytes: %s", what,
                       size - 1, text);
    strcpy(out, text);
    return 0;
}

const char *cli_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Timers and services often have no HOME. NULL where the user has none. */
static const char *find_home(void)
{
    const char *home = cli_variable("HOME");
    const struct passwd *user = home ? NULL : getpwuid(getuid());

    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : home;
}

static int find_data_dir(struct cli *cli, const char *given, struct err *err)
{
    const char *state = cli_variable("XDG_STATE_HOME"), *home = find_home();
    const size_t size = sizeof(cli->data_dir);

    if (!given)
        given = cli_variable("SKILLVM_DATA");
    if (given)
        return put(cli->data_dir, size, "data directory", err, "%s", given);
    if (state)
        return put(cli->data_dir, size, "data directory", err, "%s/skillvm", state);
    if (!home)
        return err_set(
            err, ENOENT,
            "this user has no home, and neither HOME nor SKILLVM_DATA is set; give --data DIR");
    return put(cli->data_dir, size, "data directory", err, "%s/.local/state/skillvm", home);
}

static int find_socket(struct cli *cli, const char *given, struct err *err)
{
    const size_t size = sizeof(cli->socket_path);
    char here[PATH_MAX];

    if (!given)
        return put(cli->socket_path, size, "socket", err, "%s/skillvm.sock", cli->data_dir);
    if (given[0] == '/')
        return put(cli->socket_path, size, "socket", err, "%s", given);
    if (!getcwd(here, sizeof(here)))
        return err_set_errno(err, errno, "cannot tell the working directory");
    return put(cli->socket_path, size, "socket", err, "%s/%s", here, given);
}

/* With those above it; the last one is the caller's alone. */
static int make_data_dir(const char *path, struct err *err)
{
    char part[PATH_MAX];

    strcpy(part, path);
    int result = fd_make_folders(part, 0755, 0700);
    return result < 0
               ? err_set_errno(err, -result, "cannot make %s\"%s\"",
                               strcmp(part, path) == 0 ? "the data directory " : "", part)
               : 0;
}

static int find_programs(struct cli *cli, struct err *err)
{
    int result = process_folder(cli->bin_dir, sizeof(cli->bin_dir));

    if (result < 0)
        return err_set_errno(err, -result, "cannot read /proc/self/exe");
    const char *share = cli_variable("SKILLVM_SHARE");
    if (share)
        return put(cli->share_dir, sizeof(cli->share_dir), "share directory", err, "%s", share);
    char path[PATH_MAX + 32], real[PATH_MAX];
    snprintf(path, sizeof(path), "%s/../share/skillvm", cli->bin_dir);
    return put(cli->share_dir, sizeof(cli->share_dir), "share directory", err, "%s",
               realpath(path, real) ? real : path);
}

static int find_images_dir(struct cli *cli, struct err *err)
{
    const char *given = cli_variable("SKILLVM_IMAGES");
    const size_t size = sizeof(cli->images_dir);

    /* The daemon reads the same variable, in another folder. */
    if (given && given[0] != '/')
        return err_set(err, EINVAL, "SKILLVM_IMAGES is \"%s\", which is no absolute path",
                       given);
    return given ? put(cli->images_dir, size, "folder of images", err, "%s", given)
                 : put(cli->images_dir, size, "folder of images", err, "%s/images",
                       cli->data_dir);
}

int cli_find_images(struct cli *cli, const char *data_dir, struct err *err)
{
    int result = find_programs(cli, err);

    /* Without a data directory there is no such folder either. */
    if (result == 0 && find_data_dir(cli, data_dir, NULL) == 0)
        result = find_images_dir(cli, err);
    return result;
}

int cli_find_places(struct cli *cli, const char *data_dir, const char *socket_path,
                    struct err *err)
{
    char real[PATH_MAX];
    int result = find_programs(cli, err);

    if (result < 0)
        return result;
    result = find_data_dir(cli, data_dir, err);
    if (result < 0)
        return result;
    result = make_data_dir(cli->data_dir, err);
    if (result < 0)
        return result;
    /* Absolute: a daemon outlives this process's working directory. */
    if (!realpath(cli->data_dir, real))
        return err_set_errno(err, errno, "cannot open the data directory \"%s\"",
                             cli->data_dir);
    strcpy(cli->data_dir, real);
    result = find_images_dir(cli, err);
    if (result < 0)
        return result;

    /* A data directory that was asked for is that of the daemon that is meant. */
    if (!socket_path && !data_dir)
        socket_path = cli_variable("SKILLVM_SOCKET");
    result = find_socket(cli, socket_path, err);
    if (result == -ENAMETOOLONG && err && strlen(err->message) + 40 < sizeof(err->message))
        strcat(err->message, " (give a shorter one with --socket)");
    return result;
}

const char *cli_join(const char *dir, const char *name, char *out)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        out[0] = '\0';
    return out;
}

const char *cli_sibling(const struct cli *cli, const char *name, char *out)
{
    return cli_join(cli->bin_dir, name, out);
}
