/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill push`: skills, and folders that have some. */
#include "api/cli/remote.h"
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Everything that is pushed by one command. */
struct pushes {
    const struct cli *cli;
    const struct options *options;
    bool several;
    int status; /* CLI_OK until one fails */
};

static void print_pushed(const cJSON *json)
{
    const char *digest = verbs_text(json, "digest"), *name = verbs_text(json, "name");
    const char *image = verbs_text(json, "image");
    char skill[VERBS_SKILL_SIZE];

    verbs_print_warnings(json);
    show_text(stdout, verbs_skill(json, skill));
    show_text(stdout, "  ");
    (void)snprintf(skill, sizeof(skill), "%.12s\n", digest ? digest : "");
    show_text(stdout, skill);
    if (image)
        cli_say("it runs in the image %s: %s", image, verbs_text(json, "image_reason"));
    if (name && verbs_text(json, "previous"))
        cli_say("%s has no version: the content before this one stays as %s@%s", name, name,
                verbs_text(json, "previous"));
    if (name && verbs_text(json, "replaced"))
        cli_say("the content before this one, %s, is gone", verbs_text(json, "replaced"));
}

static void push_one(struct pushes *p, const char *path)
{
    int (*push)(struct skillvm *, int, char **, struct skillvm_error *) =
        p->options->replace ? skillvm_replace_skill : skillvm_push_skill;
    struct skillvm_error error;
    _cleanup_fd_ int fd = -1;
    char *json = NULL;
    int result = skillvm_open_skill(path, &fd, &error), status = CLI_FAILED;

    if (result < 0) {
        cli_say("%s", error.message);
    } else {
        result = push(p->cli->client, fd, &json, &error);
        /* Which of them it was, a refusal need not say. */
        if (result < 0 && p->several)
            cli_say("%s is not registered:", path);
        status = verbs_print(p->cli, p->options, result, &error, json, print_pushed);
    }
    if (status != CLI_OK)
        p->status = status;
}

static bool has_skill(const char *folder)
{
    _cleanup_fd_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 &&
           (faccessat(fd, "SKILL.md", F_OK, 0) == 0 || faccessat(fd, "skill.md", F_OK, 0) == 0);
}

/* Pushes what is a skill of a folder's subfolders, by name. How many there are, or -errno. */
static int push_members(struct pushes *p, const char *folder)
{
    struct dirent **members = NULL;
    int n = scandir(folder, &members, NULL, alphasort), pushed = 0;

    for (int i = 0; i < n; i++) {
        _cleanup_free_ char *path = NULL;

        if (members[i]->d_name[0] != '.' &&
            asprintf(&path, "%s/%s", folder, members[i]->d_name) >= 0 && has_skill(path)) {
            push_one(p, path);
            pushed++;
        }
        free(members[i]);
    }
    free(members);
    return n < 0 ? -errno : pushed;
}

/*
 * A folder that is no skill: its subfolders, and those where projects keep their skills. All of
 * them, for what lies beside its skills (a template) is often one too.
 */
static void push_folder(struct pushes *p, const char *folder)
{
    static const char *const kept[] = {"", "/.skills", "/skills"};
    int pushed = 0;

    p->several = true;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        _cleanup_free_ char *path = NULL;
        int n = asprintf(&path, "%s%s", folder, kept[i]) < 0 ? -ENOMEM : push_members(p, path);

        if (n >= 0) {
            pushed += n;
        } else if (n != -ENOENT && n != -ENOTDIR) {
            cli_say("cannot read the folder \"%s\": %s", path ? path : folder, strerror(-n));
            p->status = CLI_FAILED;
            return;
        }
    }
    if (pushed > 0)
        return;
    cli_say("\"%s\" has no SKILL.md, and none of its folders has one", folder);
    p->status = CLI_FAILED;
}

int skill_push(const struct cli *cli, const struct options *options)
{
    struct pushes p = {.cli = cli, .options = options, .several = options->n_args > 1};

    for (int i = 0; i < options->n_args; i++) {
        const char *path = options->args[i];
        struct stat st;

        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !has_skill(path))
            push_folder(&p, path);
        else
            push_one(&p, path);
    }
    return p.status;
}
