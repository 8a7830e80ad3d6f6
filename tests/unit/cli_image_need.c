/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are built when a run first needs them, with a builder that only writes down that
 * it was called: when it is, when it is not, and what is said instead.
 */
#include "api/cli/image_need.h"

#include "api/cli/image_store.h"
#include "api/host/files.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64];
static struct cli cli;
static int own_stderr;

static void put(const char *name, mode_t mode, const char *text)
{
    char path[256];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", top, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void folder(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* What the builder wrote down, and what was said. */
static const char *read_back(const char *name)
{
    static char text[4096];
    char path[256];
    _cleanup_fd_ int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/%s", top, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : fd_read_full(fd, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static void say_into_file(void)
{
    char path[256];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/said", top);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
}

/* An installation with `python` alone, and recipes of data, node and one that cannot be built.
 */
static int set_up(void **state)
{
    static const char builder[] =
        "while [ $# -gt 0 ]; do\n"
        "    case $1 in --recipe) recipe=$2 ;; --output) output=$2 ;; esac\n"
        "    shift\n"
        "done\n"
        "name=$(sed -n 's/^name: //p' \"$recipe\")\n"
        "echo \"$name\" >>\"${0%/*}/../../built\"\n"
        "[ \"$name\" != broken ] || exit 1\n"
        "for part in modules packages manifest origin sha256 erofs; do\n"
        "    printf '%s\\n' 'language python 3.11' 'standard json' 'module numpy' 'program "
        "node' >\"$output/$name.$part\"\n"
        "done\n";
    (void)state;

    strcpy(top, "/tmp/cli-image-need-XXXXXX");
    assert_non_null(mkdtemp(top));
    memset(&cli, 0, sizeof(cli));
    snprintf(cli.share_dir, sizeof(cli.share_dir), "%s/share", top);
    snprintf(cli.images_dir, sizeof(cli.images_dir), "%s/made", top);
    snprintf(cli.data_dir, sizeof(cli.data_dir), "%s", top);
    snprintf(cli.socket_path, sizeof(cli.socket_path), "%s/socket", top);
    folder("share");
    folder("share/images");
    put("share/python.erofs", 0600, "");
    put("share/python.manifest", 0600, "program bash\n");
    put("share/images/build.sh", 0600, builder);
    put("share/images/image-tree", 0700, "#!/bin/sh\nsed -n 's/^name: //p' \"$2\"\n");
    for (size_t i = 0; i < 4; i++) {
        static const char *const inputs[] = {"init", "zygote", "zygote-node", "python"};
        char path[64];

        snprintf(path, sizeof(path), "share/images/%s", inputs[i]);
        put(path, 0600, "");
    }
    put("share/images/data.yaml", 0600, "name: data\n");
    put("share/images/node.yaml", 0600, "name: node\n");
    put("share/images/broken.yaml", 0600, "name: broken\n");
    put("share/images/other.yaml", 0600, "name: data\n");
    own_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    say_into_file();
    return own_stderr < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    (void)dup2(own_stderr, STDERR_FILENO);
    fd_close(&own_stderr);
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    return system(command);
}

static void meet(int want, const struct image_need *need, const char *built)
{
    struct err err = {0};
    int r = image_need_meet(&cli, need, &err);

    if ((r < 0 ? err.code : 0) != want)
        fail_msg("%d: %s", r, err.message);
    assert_string_equal(read_back("built"), built);
}

static void what_is_asked_for_is_built_once(void **state)
{
    (void)state;
    meet(0, &(struct image_need){.image = "data", .build = true}, "data\n");
    assert_non_null(strstr(read_back("said"), "there is no image data yet: building it"));
    meet(0, &(struct image_need){.image = "data", .build = true}, "data\n");
    meet(0, &(struct image_need){.image = "python", .build = true}, "data\n");
}

static void else_the_command_is_said(void **state)
{
    (void)state;
    meet(0, &(struct image_need){.image = "data"}, "");
    assert_non_null(strstr(read_back("said"), "`skillvm image build data` makes it"));
}

static void what_has_no_recipe_is_the_daemons_to_refuse(void **state)
{
    (void)state;
    meet(0, &(struct image_need){.image = "nowhere", .build = true}, "");
    meet(0, &(struct image_need){.image = "../images/data", .build = true}, "");
    meet(0, &(struct image_need){.image = "", .build = true}, "");
    /* The recipe of this name makes another image. */
    meet(0, &(struct image_need){.image = "other", .build = true}, "");
    assert_string_equal(read_back("said"), "");
}

static void a_build_that_fails_is_told(void **state)
{
    (void)state;
    meet(EREMOTEIO, &(struct image_need){.image = "broken", .build = true}, "broken\n");
}

static void node_is_built_for_what_is_in_it(void **state)
{
    (void)state;
    meet(0, &(struct image_need){.lang = "bash", .build = true}, "");
    meet(0, &(struct image_need){.lang = "node", .build = true}, "node\n");
    meet(0, &(struct image_need){.lang = "node", .build = true}, "node\n");
}

/* A skill is read for it: what its SKILL.md names, and what its entry is in. */
static void a_skill_says_what_it_needs(void **state)
{
    char path[128];
    (void)state;

    folder("skill");
    put("skill/SKILL.md", 0600, "---\nname: s\ndescription: d\nimage: data\n---\n");
    put("skill/main.py", 0600, "print(1)\n");
    snprintf(path, sizeof(path), "%s/skill", top);
    meet(0, &(struct image_need){.path = path}, "");
    meet(0, &(struct image_need){.path = path, .image = "python", .build = true}, "");
    meet(0, &(struct image_need){.path = path, .build = true}, "data\n");
    folder("script");
    put("script/SKILL.md", 0600, "---\nname: s\ndescription: d\n---\n");
    put("script/main.js", 0600, "1\n");
    snprintf(path, sizeof(path), "%s/script", top);
    /* What was built last says that it runs Node. */
    meet(0, &(struct image_need){.path = path, .build = true}, "data\n");
    assert_int_equal(image_store_remove(&cli, "data", NULL), 0);
    meet(0, &(struct image_need){.path = path, .build = true}, "data\nnode\n");
    put("script/SKILL.md", 0600, "nothing\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "data\nnode\n");
}

/* Before it is built, what its recipe says it brings is all that is known of an image. */
static void a_skill_imports_what_it_needs(void **state)
{
    char path[128];
    (void)state;

    put("share/python.manifest", 0600, "language python 3.11\nstandard json\nprogram bash\n");
    put("share/data.manifest", 0600, "module numpy\nprogram dot\n");
    put("share/node.manifest", 0600, "program node\n");
    put("share/broken.manifest", 0600, "module numpy\nmodule uno\nprogram dot\n");
    put("share/nothing.manifest", 0600, "module torch\n");
    folder("skill");
    put("skill/SKILL.md", 0600, "---\nname: s\ndescription: d\n---\n");
    snprintf(path, sizeof(path), "%s/skill", top);
    put("skill/main.py", 0600, "import json\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "");
    /* Nothing that is missing is in any. */
    put("skill/main.py", 0600, "import leftpad\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "");
    put("skill/main.py", 0600, "import torch\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "");
    put("skill/main.py", 0600, "try:\n    import numpy\nexcept ImportError:\n    pass\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "");
    put("skill/main.py", 0600, "import json, numpy\n");
    meet(0, &(struct image_need){.path = path}, "");
    meet(0, &(struct image_need){.path = path, .image = "python", .build = true}, "");
    put("skill/SKILL.md", 0600, "---\nname: s\ndescription: d\nimage: python\n---\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "");
    put("skill/SKILL.md", 0600, "---\nname: s\ndescription: d\n---\n");
    meet(0, &(struct image_need){.path = path, .build = true}, "data\n");
    assert_non_null(strstr(read_back("said"), "there is no image data yet: building it"));
    /* What it has now is what the builder listed: it is not built again. */
    meet(0, &(struct image_need){.path = path, .build = true}, "data\n");
    /* The one that brings the most of it, which is not all. */
    put("skill/main.py", 0600, "import numpy, uno, leftpad\n");
    meet(EREMOTEIO, &(struct image_need){.path = path, .build = true}, "data\nbroken\n");
}

/* As of a skill, whether it says what it is in or only begins so. */
static void code_imports_what_it_needs(void **state)
{
    (void)state;
    put("share/python.manifest", 0600, "language python 3.11\nstandard json\nprogram bash\n");
    put("share/data.manifest", 0600, "module numpy\nprogram dot\n");
    put("share/node.manifest", 0600, "program node\n");
    meet(0, &(struct image_need){.code = "import json", .build = true}, "");
    meet(0, &(struct image_need){.code = "import numpy"}, "");
    meet(0, &(struct image_need){.code = "import numpy", .image = "python", .build = true}, "");
    /* What is no code is the daemon's to refuse. */
    meet(0, &(struct image_need){.code = "import numpy", .lang = "ruby", .build = true}, "");
    meet(0, &(struct image_need){.code = "#!/usr/bin/env node\n1\n", .build = true}, "node\n");
    assert_int_equal(image_store_remove(&cli, "node", NULL), 0);
    meet(0, &(struct image_need){.code = "dot -V", .lang = "bash", .build = true},
         "node\ndata\n");
    assert_int_equal(image_store_remove(&cli, "data", NULL), 0);
    meet(0, &(struct image_need){.code = "import numpy", .lang = "python", .build = true},
         "node\ndata\ndata\n");
    meet(0, &(struct image_need){.code = "import numpy", .build = true}, "node\ndata\ndata\n");
}

/* An operator's recipe brings what it says, as those of the installation do. */
static void an_operators_recipe_is_built(void **state)
{
    (void)state;
    put("share/python.manifest", 0600, "language python 3.11\nprogram bash\n");
    folder("made");
    folder("made/recipes");
    put("made/recipes/geo.yaml", 0600,
        "name: geo\nextends: python.yaml\nbrings: [module numpy]\n");
    put("made/recipes/file.yaml", 0600, "name: other\nbrings: [module torch]\n");
    meet(0, &(struct image_need){.code = "import torch", .build = true}, "");
    meet(0, &(struct image_need){.code = "import numpy", .build = true}, "geo\n");
    meet(0, &(struct image_need){.code = "import numpy", .build = true}, "geo\n");
}

static void on_a_terminal_nobody_has_to_ask(void **state)
{
    int ends[2];
    (void)state;

    if (openpty(&ends[0], &ends[1], NULL, NULL, NULL) < 0) {
        skip();
        return;
    }
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    meet(0, &(struct image_need){.image = "data"}, "data\n");
    say_into_file();
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

static int listen_as_daemon(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", cli.socket_path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

struct answerer {
    int fd;
    const char *answer;
    char asked[512];
};

/* A daemon that is asked once; who only looks whether it is there asks nothing. */
static void *answer_once(void *arg)
{
    struct answerer *answerer = arg;
    char reply[512];
    size_t n = 0;
    int fd = -1;

    while (!strstr(answerer->asked, "\r\n\r\n")) {
        ssize_t got =
            fd < 0 ? 0 : read(fd, answerer->asked + n, sizeof(answerer->asked) - 1 - n);

        if (got < 0)
            break;
        n += (size_t)got;
        if (got > 0)
            continue;
        fd_close(&fd);
        fd = accept4(answerer->fd, NULL, NULL, SOCK_CLOEXEC);
    }
    snprintf(reply, sizeof(reply),
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(answerer->answer), answerer->answer);
    (void)fd_write_full(fd, reply, strlen(reply));
    fd_close(&fd);
    return NULL;
}

static void build_with(int fd, const char *answer, const char *built, const char *said)
{
    struct answerer answerer = {.fd = fd, .answer = answer};
    pthread_t thread;

    say_into_file();
    assert_int_equal(pthread_create(&thread, NULL, answer_once, &answerer), 0);
    meet(0, &(struct image_need){.image = "data", .build = true}, built);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(strstr(answerer.asked, "POST /v1/admin/images/reload "));
    assert_non_null(strstr(read_back("said"), said));
    assert_int_equal(image_store_remove(&cli, "data", NULL), 0);
}

/* It is told, and what it says of the image is said. */
static void a_daemon_that_runs_takes_it_up(void **state)
{
    _cleanup_fd_ int fd = listen_as_daemon();
    (void)state;

    build_with(fd, "{\"images\":[\"python\",\"data\"],\"refused\":[]}", "data\n",
               "made, and the daemon that runs here has it");
    build_with(fd, "{\"images\":[\"python\"],\"refused\":[]}", "data\ndata\n",
               "; the daemon that runs here looks for images in another folder");
    build_with(fd,
               "{\"images\":[\"python\"],\"refused\":[{\"name\":\"data\",\"reason\":\"why "
               "not\"}]}",
               "data\ndata\ndata\n", "; the daemon that runs here does not take it: why not");
    build_with(fd, "no JSON", "data\ndata\ndata\ndata\n",
               "; the daemon that runs here could not be told");
}

/* A supervisor, which says that it is one. Another process: nobody sees a lock of its own. */
static pid_t run_as_host(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct host_status host = {.state = HOST_READY, .qemu_pid = 1, .boot_ms = 1};
        int lock = -1;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        host.supervisor_pid = getpid();
        if (listen_as_daemon() < 0 || files_make_dir(cli.data_dir, NULL) < 0 ||
            files_lock(cli.data_dir, &lock, NULL) < 0 ||
            files_write_status(cli.data_dir, &host) < 0)
            _exit(1);
        (void)fd_write_full(ready[1], "", 1);
        pause();
        _exit(0);
    }
    fd_close(&ready[1]);
    assert_int_equal(fd_read_full(ready[0], &byte, 1), 1);
    fd_close(&ready[0]);
    return pid;
}

/* It would not find the image before it is started again. */
static void while_a_software_host_runs_nothing_is_built(void **state)
{
    pid_t pid = run_as_host();
    (void)state;

    meet(EBUSY, &(struct image_need){.image = "data", .build = true}, "");
    /* Who did not ask for it has the run go on. */
    meet(0, &(struct image_need){.image = "data"}, "");
    assert_non_null(strstr(read_back("said"), "the software host finds it when it starts"));
    image_tell(&cli, "data", true);
    assert_non_null(strstr(read_back("said"), "; the software host that runs finds it after "
                                              "`skillvm down` and `skillvm up`"));
    image_tell(&cli, "data", false);
    assert_non_null(strstr(read_back("said"),
                           "the image data is removed; the software host that "
                           "runs has it until `skillvm down`"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_asked_for_is_built_once),
        TEST(else_the_command_is_said),
        TEST(what_has_no_recipe_is_the_daemons_to_refuse),
        TEST(a_build_that_fails_is_told),
        TEST(node_is_built_for_what_is_in_it),
        TEST(a_skill_says_what_it_needs),
        TEST(a_skill_imports_what_it_needs),
        TEST(code_imports_what_it_needs),
        TEST(an_operators_recipe_is_built),
        TEST(on_a_terminal_nobody_has_to_ask),
        TEST(a_daemon_that_runs_takes_it_up),
        TEST(while_a_software_host_runs_nothing_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
