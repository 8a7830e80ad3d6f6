/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill init`: a skill that works as it is, in each language. */
#include "api/cli/skill_verbs.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "@" stands for the skill's name. */
static const char skill_md[] =
    "---\n"
    "name: @\n"
    "description: Says hello to the name it is given. Use it when someone wants a greeting.\n"
    "metadata:\n"
    "  version: \"0.1.0\"\n"
    "---\n"
    "# @\n"
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
    "    json.dump(answer, f)\n"
    "print(answer[\"greeting\"])\n";

static const char main_sh[] =
    "#!/bin/bash\n"
    "set -euo pipefail\n"
    "\n"
    "name=$(jq -r '.name // \"world\"')\n"
    "greeting=\"Hello, $name!\"\n"
    "jq -n --arg greeting \"$greeting\" '{greeting: $greeting}' >\"$SANDBOX_OUTPUT\"\n"
    "echo \"$greeting\"\n";

static const char main_js[] =
    "const fs = require('fs');\n"
    "\n"
    "const request = JSON.parse(fs.readFileSync(0, 'utf8'));\n"
    "const answer = { greeting: `Hello, ${request.name ?? 'world'}!` };\n"
    "fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(answer));\n"
    "console.log(answer.greeting);\n";

static const char test_json[] = "{\n"
                                "  \"input\": {\"name\": \"Ada\"},\n"
                                "  \"expect\": {\"output\": {\"greeting\": \"Hello, Ada!\"}}\n"
                                "}\n";

/* What a skill in one of them begins with. */
static const struct beginning {
    const char *name;
    const char *file;
    const char *text;
} beginnings[] = {
    {"python", "main.py", main_py}, {"node", "main.js", main_js}, {"bash", "main.sh", main_sh}};

int skill_print_paths(const struct options *options, char *const *paths, int n)
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

/* Writes a text with the skill's name for each "@". */
static int write_file(int dir_fd, const char *name, const char *skill, const char *text,
                      struct err *err)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : 0;

    while (r == 0 && *text) {
        const size_t len = strcspn(text, "@");

        r = fd_write_full(fd, text, len);
        text += len;
        if (r == 0 && *text) {
            r = fd_write_full(fd, skill, strlen(skill));
            text++;
        }
    }
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

static int make(const char *name, const struct beginning *beginning, struct err *err)
{
    _cleanup_fd_ int dir = -1;
    int r;

    if (mkdir(name, 0755) < 0 || (dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return err_set_errno(err, errno, "cannot make the folder %s", name);
    if (mkdirat(dir, "tests", 0755) < 0)
        return err_set_errno(err, errno, "cannot make the folder %s/tests", name);
    r = write_file(dir, "SKILL.md", name, skill_md, err);
    if (r < 0)
        return r;
    r = write_file(dir, beginning->file, name, beginning->text, err);
    return r < 0 ? r : write_file(dir, "tests/greeting.json", name, test_json, err);
}

/* Python where none is named; a shell is bash. */
static const struct beginning *find_beginning(const char *name)
{
    size_t i = 0;

    while (name && i + 1 < sizeof(beginnings) / sizeof(beginnings[0]) &&
           strcmp(beginnings[i].name, name) != 0)
        i++;
    return &beginnings[i];
}

int skill_init(const struct cli *cli, const struct options *options)
{
    const struct beginning *beginning = find_beginning(options->lang);
    const char *name = options->args[0];
    char paths[3][128], *list[] = {paths[0], paths[1], paths[2]};
    struct err err = {0};

    (void)cli;
    if (!good_name(name))
        return help_usage_error("skill",
                                "a skill's name has up to 64 lower-case letters, digits and "
                                "single hyphens between them");
    if (make(name, beginning, &err) < 0)
        return verbs_failed(&err);
    (void)snprintf(paths[0], sizeof(paths[0]), "%s/SKILL.md", name);
    (void)snprintf(paths[1], sizeof(paths[1]), "%s/%s", name, beginning->file);
    (void)snprintf(paths[2], sizeof(paths[2]), "%s/tests/greeting.json", name);
    if (options->json)
        return skill_print_paths(options, list, 3);
    printf("made %s, %s and %s; try it:\n"
           "  skillvm run ./%s --input '{\"name\": \"Ada\"}'\n"
           "  skillvm skill test %s\n",
           paths[0], paths[1], paths[2], name, name);
    return CLI_OK;
}
