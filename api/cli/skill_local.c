/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the table of verbs, and those that need no daemon. */
#include "api/cli/skill_verbs.h"

#include "api/cli/files.h"
#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct verb verbs[] = {
    {"push",
     "usage: skillvm skill push PATH [-o json]\n"
     "\n"
     "Registers a skill at the daemon: a folder with a SKILL.md, or a zip or tar of one. The "
     "same\n"
     "name and version with the same content may be pushed again; other content needs another\n"
     "version.\n"
     "\n"
     "example:\n"
     "  skillvm skill push examples/word-counter\n",
     VERB_FORMAT, 1, 1, skill_push},
    {"list",
     "usage: skillvm skill list [-o json|table]\n"
     "\n"
     "Lists the registered skills, by name, the version registered last first.\n"
     "\n"
     "example:\n"
     "  skillvm skill list -o json\n",
     VERB_FORMAT, 0, 0, skill_list},
    {"show",
     "usage: skillvm skill show NAME[@VERSION] [-o json|table]\n"
     "\n"
     "Shows a registered skill with its files and instructions; without a version the one\n"
     "registered last.\n"
     "\n"
     "example:\n"
     "  skillvm skill show word-counter@1.0.0\n",
     VERB_FORMAT, 1, 1, skill_show},
    {"rm",
     "usage: skillvm skill rm NAME@VERSION\n"
     "\n"
     "Removes a version of a skill from the daemon; VERSION may be latest. What runs it goes "
     "on.\n"
     "\n"
     "example:\n"
     "  skillvm skill rm word-counter@1.0.0\n",
     0, 1, 1, skill_rm},
    {"lint",
     "usage: skillvm skill lint PATH [--strict] [-o json]\n"
     "\n"
     "Checks a skill as a push would, without a daemon. Exit status 1 when it would be "
     "refused; "
     "with\n"
     "--strict also when there is a warning.\n"
     "\n"
     "example:\n"
     "  skillvm skill lint my-skill --strict\n",
     VERB_FORMAT | VERB_STRICT | VERB_OFFLINE, 1, 1, skill_lint},
    {"init",
     "usage: skillvm skill init NAME\n"
     "\n"
     "Makes the folder NAME with a SKILL.md and a main.py to begin with.\n"
     "\n"
     "example:\n"
     "  skillvm skill init my-skill && skillvm run ./my-skill\n",
     VERB_OFFLINE, 1, 1, skill_init},
    {.name = NULL},
};

int cmd_skill(struct cli_globals *globals, int argc, char **argv)
{
    return verbs_main(globals, "skill", verbs, argc, argv);
}

static int print_lint_json(const struct skill *skill, const struct err *err)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *warnings, *errors;
    char *text;

    cJSON_AddBoolToObject(json, "valid", !err->code);
    if (!err->code) {
        cJSON_AddStringToObject(json, "name", skill->name);
        if (skill->version)
            cJSON_AddStringToObject(json, "version", skill->version);
    }
    warnings = cJSON_AddArrayToObject(json, "warnings");
    for (size_t i = 0; i < skill->warnings.len; i++)
        cJSON_AddItemToArray(warnings, cJSON_CreateString(skill->warnings.items[i]));
    errors = cJSON_AddArrayToObject(json, "errors");
    if (err->code)
        cJSON_AddItemToArray(errors, cJSON_CreateString(err->message));
    text = cJSON_Print(json);
    cJSON_Delete(json);
    if (!text) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    puts(text);
    free(text);
    return 0;
}

/* Loads a skill as the daemon would. 0 or -errno with err. */
static int load(const char *path, struct skill *skill, struct err *err)
{
    struct skill_archive archive;
    _cleanup_fd_ int fd = -1;
    int r = files_open_skill(path, &fd, err);

    if (r == 0)
        r = skill_archive_load(fd, &archive_limits_default, -1, &archive, skill, err);
    if (r < 0)
        return r;
    skill_archive_finish(&archive);
    return 0;
}

int skill_lint(const struct cli *cli, const struct verb_options *options)
{
    struct skill skill = {0};
    struct err err = {0};
    int status = CLI_OK;

    (void)cli;
    if (load(options->args[0], &skill, &err) < 0 || (options->strict && skill.warnings.len > 0))
        status = CLI_NO;
    if (options->json) {
        if (print_lint_json(&skill, &err) != 0)
            status = CLI_FAILED;
    } else {
        for (size_t i = 0; i < skill.warnings.len; i++)
            cli_say("%s: %s", options->strict ? "error" : "warning", skill.warnings.items[i]);
        if (err.code)
            cli_say("error: %s", err.message);
        else if (status == CLI_OK)
            printf("%s is a good skill\n", skill.name);
    }
    skill_finish(&skill);
    return status;
}

static int write_file(int dir_fd, const char *name, const char *text, const char *skill_name,
                      struct err *err)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : 0;

    /* %s in the text stands for the name. */
    for (const char *mark; r == 0 && (mark = strstr(text, "%s")); text = mark + 2) {
        r = fd_write_full(fd, text, (size_t)(mark - text));
        if (r == 0)
            r = fd_write_full(fd, skill_name, strlen(skill_name));
    }
    if (r == 0)
        r = fd_write_full(fd, text, strlen(text));
    return r < 0 ? err_set_errno(err, -r, "cannot write %s", name) : 0;
}

/* The specification's name: lower-case letters, digits and single hyphens. */
static bool good_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
           name[len - 1] != '-' && !strstr(name, "--");
}

int skill_init(const struct cli *cli, const struct verb_options *options)
{
    static const char skill_md[] =
        "---\n"
        "name: %s\n"
        "description: Says hello to the name it is given. Use it when someone wants a "
        "greeting.\n"
        "version: 0.1.0\n"
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
    else if (write_file(dir, "SKILL.md", skill_md, name, &err) == 0)
        (void)write_file(dir, "main.py", main_py, name, &err);
    if (err.code)
        return verbs_failed(&err);
    printf("made %s/SKILL.md and %s/main.py; try it:\n"
           "  skillvm run ./%s --input '{\"name\": \"Ada\"}'\n",
           name, name, name);
    return CLI_OK;
}
