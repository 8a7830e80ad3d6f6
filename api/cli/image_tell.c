/* SPDX-License-Identifier: Apache-2.0 */
/* Says what became of an image, and has the daemon that runs here take that up. */
#include "api/cli/daemon.h"
#include "api/cli/image_store.h"
#include "api/cli/remote.h"
#include "api/cli/verbs.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(struct skillvm *, skillvm_close)

/* What the daemon says. 0 or -errno. */
static int reload(const struct cli *cli, cJSON **ret, struct err *err)
{
    _cleanup_(skillvm_close) struct skillvm *client = NULL;
    struct skillvm_error error;
    int r = remote_open(cli, &client, err);

    if (r < 0)
        return r;
    r = remote_request_json(client, "POST", "/v1/admin/images/reload", ret, &error);
    return r < 0 ? err_set(err, -r, "%s", error.message) : 0;
}

static bool has_name(const cJSON *names, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, names) {
        const char *text = cJSON_GetStringValue(item);

        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

/* Why it does not take the image; NULL: it does. */
static const char *find_refusal(const cJSON *answer, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, verbs_member(answer, "refused")) {
        const char *text = verbs_text(item, "name");

        if (text && strcmp(text, name) == 0)
            return verbs_text(item, "reason");
    }
    return NULL;
}

/* What follows in the sentence, of a daemon that was told. */
static void describe(const cJSON *answer, const char *name, bool is_made, char *ret,
                     size_t size)
{
    const char *refusal = find_refusal(answer, name);
    bool is_there = has_name(verbs_member(answer, "images"), name);

    if (is_made && refusal)
        (void)snprintf(ret, size, "; the daemon that runs here does not take it: %.400s",
                       refusal);
    else if (is_made && is_there)
        (void)snprintf(ret, size, ", and the daemon that runs here has it");
    else if (is_made)
        (void)snprintf(ret, size,
                       "; the daemon that runs here looks for images in another folder (its "
                       "setting images)");
    else if (is_there)
        (void)snprintf(ret, size, "; the daemon that runs here has one in another folder");
    else
        (void)snprintf(ret, size,
                       ", and the daemon that runs here lets only those have it that wait or "
                       "run already");
}

static void describe_failure(const struct err *err, char *ret, size_t size)
{
    (void)snprintf(ret, size,
                   "; the daemon that runs here could not be told, and knows it once it is "
                   "started again: %.400s",
                   err->message);
}

/* What follows in the sentence; "" where no daemon runs. */
static void tell(const struct cli *cli, const char *name, bool is_made, char *ret, size_t size)
{
    _cleanup_(cJSON_Delete) cJSON *answer = NULL;
    struct daemon_state daemon;
    struct err err = {0};

    if (daemon_find(cli, &daemon, &err) < 0) {
        describe_failure(&err, ret, size);
        return;
    }
    if (!daemon.up)
        return;
    if (daemon.soft)
        (void)snprintf(ret, size, "%s",
                       is_made ? "; the software host that runs finds it after `skillvm down` "
                                 "and `skillvm up`"
                               : "; the software host that runs has it until `skillvm down`");
    else if (reload(cli, &answer, &err) < 0)
        describe_failure(&err, ret, size);
    else
        describe(answer, name, is_made, ret, size);
}

void image_tell(const struct cli *cli, const char *name, bool is_made)
{
    char daemon[ERR_MESSAGE_MAX] = "";

    tell(cli, name, is_made, daemon, sizeof(daemon));
    if (is_made)
        cli_say("the image %s is in %s%s", name, cli->images_dir, daemon);
    else
        cli_say("the image %s is removed%s", name, daemon);
}
