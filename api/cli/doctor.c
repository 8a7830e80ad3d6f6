/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm doctor`: the findings of machine.h, for people and as JSON. */
#include "api/cli/cli.h"
#include "api/cli/host_check.h"
#include "api/cli/kvm_probe.h"
#include "api/cli/options.h"
#include "api/cli/show.h"
#include "api/cli/verbs.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int print_json(const struct host_check_report *report)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *checks;

    cJSON_AddBoolToObject(json, "kvm_usable", report->kvm_usable);
    cJSON_AddBoolToObject(json, "software_host_usable", report->soft_usable);
    cJSON_AddStringToObject(json, "summary", report->summary);
    checks = cJSON_AddArrayToObject(json, "checks");
    for (size_t i = 0; i < report->n; i++) {
        const struct host_check *check = &report->checks[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", check->name);
        cJSON_AddStringToObject(item, "status", host_check_level_name(check->level));
        cJSON_AddStringToObject(item, "found", check->found);
        cJSON_AddItemToObject(item, "advice",
                              check->advice[0] ? cJSON_CreateString(check->advice)
                                               : cJSON_CreateNull());
        cJSON_AddItemToArray(checks, item);
    }
    int status = verbs_print_tree(json);

    return status == CLI_OK && !report->kvm_usable ? CLI_NO : status;
}

static int print_text(const struct host_check_report *report)
{
    bool colours = show_colours(STDOUT_FILENO);

    for (size_t i = 0; i < report->n; i++) {
        const struct host_check *check = &report->checks[i];
        const char *level = host_check_level_name(check->level);
        printf("%s%-4s%s  %-16s %s\n", colours ? show_colour_of(level) : "", level,
               colours ? "\033[0m" : "", check->name, check->found);
        if (check->advice[0])
            printf("%-4s  %-16s -> %s\n", "", "", check->advice);
    }
    printf("\n%s\n", report->summary);
    return report->kvm_usable ? CLI_OK : CLI_NO;
}

int cmd_doctor(const struct cli *cli, const struct options *options)
{
    struct host_check_report report;

    host_check_examine(cli, &report);
    return options->json ? print_json(&report) : print_text(&report);
}
