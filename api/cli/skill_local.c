/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill`: the table of verbs, and those that need no daemon. */
#include "api/cli/skill_verbs.h"

#include "api/cli/zip.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const struct verb skill_verbs[] = {
    {
        .name = "push",
        .args = "PATH … [--replace]",
        .summary = "register skills",
        .text =
            "Registers skills at the daemon, each a folder with a SKILL.md, or a zip or tar of "
            "one. Of a folder without a SKILL.md those of its folders are registered that have "
            "one, and those that its .skills and skills have. One that fails does not keep the "
            "others back.\n"
            "The same name and version with the same content may be pushed again; other "
            "content needs another version, or --replace, which is refused while an execution "
            "of what it replaces waits or runs. A skill whose SKILL.md has no version is "
            "registered as 1.0.0, each time: the content before stays as "
            "NAME@sha256:DIGEST.\n"
            "With -o json each skill's answer is a line.",
        .examples = "skill push examples/word-counter\nskill push .skills\n",
        .options = OPTION_FORMAT | OPTION_REPLACE,
        .n_args = 1,
        .n_more = VERBS_ANY_NUMBER,
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
                "the one registered last. sha256:DIGEST is a version as well.",
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
                "be refused; what the image does not have is a warning, and so is a script "
                "that nothing runs: the last line says how many there are, and whether "
                "anything in the skill can run. With --strict it must "
                "pass the Agent Skills specification's own validator, rule for rule: then "
                "fields of skillvm's own (version, lang, entry_point, timeout, resources, "
                "image, network, input_schema) are errors too, and tags, anchors, a byte order "
                "mark and empty lines before the front matter. Names may be of any script and "
                "are compared in NFKC.",
        .examples = "skill lint my-skill --strict\n",
        .options = OPTION_FORMAT | OPTION_STRICT | OPTION_OFFLINE,
        .n_args = 1,
        .run = skill_lint,
    },
    {
        .name = "inspect",
        .args = "SKILL",
        .summary = "show what one needs",
        .text = "Reads a skill and runs nothing of it: a path of this machine (a folder, zip "
                "or tar) or the name of a registered one, NAME[@VERSION]. Shows what its "
                "Python and JavaScript import and where that comes from (the standard library, "
                "the image, the skill itself; or missing), the programs that it starts by "
                "name, what it asks for in requirements.txt, PEP 723 and SKILL.md, hosts in "
                "URLs (names of XML namespaces and schemas aside), and what looks like a "
                "secret, masked. What the image does not have is "
                "a warning with a remedy, as at a push.",
        .examples = "skill inspect my-skill\nskill inspect word-counter@1.0.0 -o json\n",
        .options = OPTION_FORMAT,
        .n_args = 1,
        .run = skill_inspect,
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
        .args = "NAME [--lang python|bash|node]",
        .summary = "begin a new one",
        .text =
            "Makes the folder NAME with a SKILL.md, a main.py, main.sh or main.js, and a test "
            "of it, all of which work as they are.",
        .examples = "skill init my-skill && skillvm skill test my-skill\n"
                    "skill init my-script --lang bash\n",
        .options = OPTION_FORMAT | OPTION_LANG | OPTION_OFFLINE,
        .n_args = 1,
        .run = skill_init,
    },
    {
        .name = "test",
        .args = "[PATH]",
        .summary = "run the tests that one has",
        .text =
            "Runs a skill, the folder PATH or the one this is, once for each file tests/*.json "
            "in it, and says where a result is not what the file expects. A file is an object "
            "such as\n"
            "  {\"input\": {\"name\": \"Ada\"},\n"
            "   \"expect\": {\"output\": {\"greeting\": \"Hello, Ada!\"}, \"files\": "
            "[\"card.txt\"]}}\n"
            "Of the output what is expected has to be there, and more may be; the files have "
            "to be there; \"status\" is success unless it says otherwise, and \"exit_code\" "
            "any; \"stdout\" and \"stderr\" are texts that have to be in them. Beside input "
            "there may be args, env, script, module, timeout, and input "
            "files, as {\"NAME\": \"PATH\"} with a path in the skill. Without a daemon one is "
            "started, used and stopped. Exit status 1 when a test fails.",
        .examples = "skill test my-skill\nskill test -o json\n",
        .options = OPTION_IMAGE | OPTION_FORMAT | OPTION_HOST,
        .n_more = 1,
        .run = skill_test,
    },
    {.name = NULL},
};

/* The zip's name in the folder it goes to, or NULL without memory. */
static char *zip_name(const struct skill *skill, const char *dir)
{
    char *name = NULL;

    if (asprintf(&name, "%s/%s-%s.zip", dir ? dir : ".", skill->name,
                 skill->version ? skill->version : SKILL_VERSION_NONE) < 0)
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
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_free_ char *name = NULL;
    struct err err = {0};

    (void)cli;
    return package(options, &skill, &name, &err) < 0 ? verbs_failed(&err)
                                                     : skill_print_paths(options, &name, 1);
}
