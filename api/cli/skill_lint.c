/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill lint`: what a push would say, and with --strict what the specification says.
 */
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "api/client/skillvm.h"
#include "api/skill/entry.h"
#include "api/skill/needs.h"
#include "api/skill/specification.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

int skill_load(const char *path, int tar_fd, struct skill_archive *ret_archive,
               struct skill *ret_skill, struct err *err)
{
    struct skill_archive archive;
    struct skillvm_error error;
    _cleanup_fd_ int fd = -1;
    int result = skillvm_open_skill(path, &fd, &error);

    if (result < 0)
        return err_set(err, error.code, "%s", error.message);
    result =
        skill_archive_load(fd, &archive_limits_default, NULL, tar_fd, &archive, ret_skill, err);
    if (result < 0)
        return result;
    if (ret_archive)
        *ret_archive = archive;
    else
        skill_archive_finish(&archive);
    return 0;
}

static int print_json(const struct skill *skill, bool can_run,
                      const struct skill_strings *errors)
{
    cJSON *json = cJSON_CreateObject();

    cJSON_AddBoolToObject(json, "valid", errors->len == 0);
    cJSON_AddBoolToObject(json, "can_run", can_run);
    (void)verbs_add_text(json, "name", skill->name);
    (void)verbs_add_text(json, "version", skill->version);
    verbs_add_strings(json, "warnings", &skill->warnings);
    verbs_add_strings(json, "errors", errors);
    return verbs_print_tree(json);
}

/* Of one that a push would take: what it is good for, or why nothing in it can run. */
static void print_verdict(const struct skill *skill, const struct err *why)
{
    const size_t n = skill->warnings.len;

    show_text(stdout, skill->name);
    fputs(n > 0       ? " can be registered"
          : why->code ? " is good to read"
                      : " is a good skill",
          stdout);
    if (n > 0)
        printf("; %zu warning%s", n, n == 1 ? "" : "s");
    if (why->code) {
        fputs("; ", stdout);
        show_text(stdout, why->message);
    }
    putchar('\n');
}

static void print_text(const struct skill *skill, const struct err *why,
                       const struct skill_strings *errors)
{
    /* What the specification refuses is not also said as loading's warning. */
    for (size_t i = 0; errors->len == 0 && i < skill->warnings.len; i++)
        cli_say("warning: %s", skill->warnings.items[i]);
    for (size_t i = 0; i < errors->len; i++)
        cli_say("error: %s", errors->items[i]);
    if (errors->len == 0)
        print_verdict(skill, why);
}

/* Loads the skill with the warnings of a push. 0, or -errno with err. */
static int load(const struct cli *cli, const char *path, struct skill_archive *ret_archive,
                struct skill *ret_skill, struct err *err)
{
    _cleanup_fd_ int tar = memfd_create("skill", MFD_CLOEXEC);
    _cleanup_wheels_layer_ struct wheels_layer packages = {.bytes = 0};
    _cleanup_needs_ struct needs needs = {0};
    int r = tar < 0 ? err_set_errno(err, errno, "cannot make an anonymous file")
                    : skill_load(path, tar, ret_archive, ret_skill, err);

    if (r < 0)
        return r;
    r = skill_needs(cli, tar, ret_archive, ret_skill, &needs, &packages, err);
    if (r < 0)
        return r;
    return needs_warn(&needs, &ret_skill->warnings) < 0 ? err_no_memory(err) : 0;
}

int skill_lint(const struct cli *cli, const struct options *options)
{
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_skill_strings_ struct skill_strings errors = {0};
    struct err err = {0}, why = {0};
    int result = load(cli, options->args[0], &archive, &skill, &err), status = CLI_OK;
    bool can_run = result == 0 && skill_entry_can_run(&skill, &archive, &why);

    if (result < 0)
        result = skill_strings_add(&errors, "%s", err.message);
    else if (options->strict)
        result = specification_check(archive.skill_md, archive.skill_md_len, archive.folder,
                                     &errors);
    if (result < 0)
        status = verbs_no_memory();
    else if (options->json)
        status = print_json(&skill, can_run, &errors);
    else
        print_text(&skill, &why, &errors);
    return status == CLI_OK && errors.len > 0 ? CLI_NO : status;
}
