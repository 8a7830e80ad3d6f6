/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon whose jail makes no layer: each that is missing is named, with the reason, in its
 * log, by /ready and by `skillvm status`.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/jail/jail.h"

#define TEXT_MAX 65536u
#define WHY      "not wanted"

/* A program in place of skillvm-jail, which asks it for less than the daemon does. */
static void start_with_bare_jail(struct harness *h)
{
    char path[128], log[128];
    int saved = dup(STDERR_FILENO), fd;

    harness_write(h, "bare-jail",
                  "#!/bin/sh\nexec '" SKILLVM_DIR "/skillvm-jail' \"$@\" --layers 0\n");
    (void)snprintf(path, sizeof(path), "%s/bare-jail", h->dir);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(setenv("SKILLVM_JAIL", path, 1), 0);
    (void)snprintf(log, sizeof(log), "%s/log", h->dir);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(saved >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    harness_start(h, NULL);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(fd) | close(saved), 0);
    harness_wait_ready(h);
}

/* All that a stream has. */
static const char *read_all(FILE *file)
{
    static char text[TEXT_MAX];

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    return text;
}

static void check_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("there is no '%s' in '%s'", part, text);
}

static void check_log(const struct harness *h)
{
    char path[128], line[128];
    const char *text;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/log", h->dir);
    file = fopen(path, "re");
    text = read_all(file);
    for (int i = 0; i < JAIL_LAYERS; i++) {
        (void)snprintf(line, sizeof(line), "event=layer-missing layer=%s reason=\"" WHY "\"\n",
                       jail_layer_names[i]);
        check_has(text, line);
    }
    (void)fclose(file);
}

static void check_status(const struct harness *h, const char *options, const char *part)
{
    char command[512];
    FILE *file;

    (void)snprintf(command, sizeof(command), "'%s' --socket '%s' --data '%s' %s status 2>&1",
                   SKILLVM, h->socket, h->data, options);
    file = popen(command, "re");
    check_has(read_all(file), part);
    assert_int_equal(pclose(file), 0);
}

static void layers_that_are_missing_are_named(void **state)
{
    static const char all[] = "no namespaces (" WHY "); no root (" WHY "); no users (" WHY
                              "); no limits (" WHY "); no landlock (" WHY ")";
    char part[512];
    struct harness h;

    (void)state;
    harness_init(&h, "boot", "restore");
    start_with_bare_jail(&h);
    check_log(&h);
    (void)snprintf(part, sizeof(part), "\"isolation\":\"%s\"", all);
    harness_expect(harness_get(&h, "/ready"), 200, part);
    check_status(&h, "-o json", part);
    (void)snprintf(part, sizeof(part), "jail     %s\n", all);
    check_status(&h, "", part);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_that_are_missing_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
