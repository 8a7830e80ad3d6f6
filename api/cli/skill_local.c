/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the table of verbs, and those that need no daemon. */
#include "api/cli/skill_verbs.h"

#include "api/cli/zip.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct verb skill_verbs[] = {
    {
        .name = "push",
        .args = "PATH",
        .summary = "register a skill",
        .text = "Registers a skill at the daemon: a folder with a SKILL.md, or a zip or tar of "
                "one. The same name and version with the same content may be pushed again; "
                "other content needs another version.",
        .examples = "skill push examples/word-counter\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = skill_push,
    },
    {
        .name = "list",
        .args = "",
        .summary = "list the registered ones",
        .text = "Lists the registered skills, by name, the version registered last first.",
        .examples = "skill list -o json\n",
        .options = OPTION_FORMAT,
        .run = skill_list,
    },
    {
        .name = "show",
        .args = "NAME[@VERSION]",
        .summary = "show one with its instructions",
        .text = "Shows a registered skill with its files and instructions; without a version "
                "the one registered last.",
        .examples = "skill show word-counter@1.0.0\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = skill_show,
    },
    {
        .name = "rm",
        .args = "NAME@VERSION",
        .summary = "remove one",
        .text =
            "Removes a version of a skill from the daemon; VERSION may be latest. What runs "
            "it goes on.",
        .examples = "skill rm word-counter@1.0.0\n",
        .n_args = 1,
        .run = skill_rm,
    },
    {
        .name = "lint",
        .args = "PATH [--strict]",
        .summary = "check one without registering it",
        .text = "Checks a skill as a push would, without a daemon. Exit status 1 when it would "
                "be refused. With --strict it must pass the Agent Skills specification's own "
                "validator, rule for rule: then fields of skillvm's own (version, lang, "
                "entry_point, timeout, resources, image, network, input_schema) are errors "
                "too. Names may be of any script and are compared in NFKC.",
        .examples = "skill lint my-skill --strict\n",
        .options = OPTION_FORMAT | OPTION_STRICT | OPTION_OFFLINE,
        .n_args = 1,
        .run = skill_lint,
    },
    {
        .name = "package",
        .args = "PATH [-d DIR]",
        .summary = "check one and make a zip of it",
        .text = "Checks a skill and makes NAME-VERSION.zip of it, here or in DIR. The same "
                "skill always gives the same zip.",
        .examples = "skill package examples/word-counter\n",
        .options = OPTION_DIR | OPTION_FORMAT | OPTION_OFFLINE,
        .n_args = 1,
        .run = skill_package,
    },
    {
        .name = "init",
        .args = "NAME",
        .summary = "begin a new one",
        .text = "Makes the folder NAME with a SKILL.md and a main.py to begin with.",
        .examples = "skill init my-skill && skillvm run ./my-skill\n",
        .options = OPTION_FORMAT | OPTION_OFFLINE,
        .n_args = 1,
        .run = skill_init,
    },
    {.name = NULL},
};

/* Prints what was made, as lines or as a JSON array. */
static int print_paths(const struct options *options, char *const *paths, int n)
{
    cJSON *json = options->json ? cJSON_CreateArray() : NULL;

    for (int i = 0; i < n; i++) {
        if (options->json)
            cJSON_AddItemToArray(json, cJSON_CreateString(paths[i]));
        else
            puts(paths[i]);
    }
    return options->json ? verbs_print_tree(json) : CLI_OK;
}

/* The zip's name in the folder it goes to, or NULL without memory. */
static char *zip_name(const struct skill *skill, const char *dir)
{
    char *name = NULL;

    if (asprintf(&name, "%s/%s-%s.zip", dir ? dir : ".", skill->name,
                 skill->version ? skill->version : "0.0.0") < 0)
        return NULL;
    return name;
}

/* Writes the zip; *ret_name, its name, is the caller's to free on failure too. */
static int package(const struct options *options, struct skill *skill, char **ret_name,
                   struct err *err)
{
    _cleanup_fd_ int tar = memfd_create("skill", MFD_CLOEXEC);
    _cleanup_fd_ int zip = -1;
    int r = tar < 0 ? err_set_errno(err, errno, "cannot make an anonymous file")
                    : skill_load(options->args[0], tar, NULL, skill, err);

    if (r < 0)
        return r;
    if (!skill->name || strchr(skill->name, '/') ||
        (skill->version && strchr(skill->version, '/')))
        return err_set(err, EINVAL, "its name and version cannot be those of a file");
    *ret_name = zip_name(skill, options->output_dir);
    if (!*ret_name)
        return err_no_memory(err);
    zip = open(*ret_name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (zip < 0)
        return err_set_errno(err, errno, "cannot write %s", *ret_name);
    if (lseek(tar, 0, SEEK_SET) < 0)
        return err_set_errno(err, errno, "cannot read the skill");
    return zip_write(tar, skill->name, zip, err);
}

int skill_package(const struct cli *cli, const struct options *options)
{
    __attribute__((cleanup(skill_finish))) struct skill skill = {0};
    _cleanup_free_ char *name = NULL;
    struct err err = {0};

    (void)cli;
    return package(options, &skill, &name, &err) < 0 ? verbs_failed(&err)
                                                     : print_paths(options, &name, 1);
}

static int write_file(int dir_fd, const char *name, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int write_file(int dir_fd, const char *name, struct err *err, const char *format, ...)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    va_list args;

    va_start(args, format);
    int n = fd < 0 ? -1 : vdprintf(fd, format, args);
    va_end(args);
    return n < 0 ? err_set_errno(err, errno, "cannot write %s", name) : 0;
}

/* The specification's name: lower-case letters, digits and single hyphens. */
static bool good_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
           name[len - 1] != '-' && !strstr(name, "--");
}

int skill_init(const struct cli *cli, const struct options *options)
{
    static const char skill_md[] =
        "---\n"
        "name: %s\n"
        "description: Says hello to the name it is given. Use it when someone wants a "
        "greeting.\n"
        "metadata:\n"
        "  version: \"0.1.0\"\n"
        "---\n"
        "# %s\n"
        "\n"
        "Give it `{\"name\": \"Ada\"}`. It answers with `{\"greeting\": \"Hello, Ada!\"}`.\n";
    static const char main_py[] =
        "import json\n"
        "import os\n"
        "import sys\n"
        "\n"
        "request = json.load(sys.stdin)\n"
        "answer = {\"greeting\": f\"Hello, {request.get('name', 'world')}!\"}\n"
        "with open(os.environ[\"SANDBOX_OUTPUT\"], \"w\") as f:\n"
        "    json.dump(answer, f)\n";
    const char *name = options->args[0];
    _cleanup_fd_ int dir = -1;
    struct err err = {0};

    (void)cli;
    if (!good_name(name))
        return help_usage_error("skill",
                                "a skill's name has up to 64 lower-case letters, digits and "
                                "single hyphens between them");
    if (mkdir(name, 0755) < 0 || (dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        (void)err_set_errno(&err, errno, "cannot make the folder %s", name);
    else if (write_file(dir, "SKILL.md", &err, skill_md, name, name) == 0)
        (void)write_file(dir, "main.py", &err, "%s", main_py);
    if (err.code)
        return verbs_failed(&err);
    if (options->json) {
        char skill_path[128], main_path[128];

        (void)snprintf(skill_path, sizeof(skill_path), "%s/SKILL.md", name);
        (void)snprintf(main_path, sizeof(main_path), "%s/main.py", name);
        return print_paths(options, (char *[]){skill_path, main_path}, 2);
    }
    printf("made %s/SKILL.md and %s/main.py; try it:\n"
           "  skillvm run ./%s --input '{\"name\": \"Ada\"}'\n",
           name, name, name);
    return CLI_OK;
}
