/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON bodies of /v1/admin, and the cursors of lists. What must hold: names and numbers
 * within their limits, and no refusal without a reason.
 */
#include "api/daemon/routes/admin_request.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/terms/limits.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tenant(const char *body, size_t len)
{
    struct tenant_limits limits = tenant_limits_default();
    _cleanup_admin_tenant_ struct admin_tenant tenant = {0};
    struct err err = {0};

    if (admin_tenant_parse(body, len, &tenant, &limits, &err) < 0) {
        if (err.code == 0)
            abort();
        return;
    }
    if (limits.weight < 1 || limits.weight > TENANT_WEIGHT_MAX ||
        limits.storage_bytes > INT64_MAX ||
        (tenant.name &&
         (!tenant.name[0] ||
          tenant_id_valid(tenant.name) != (strcmp(tenant.name, TENANT_DEFAULT) == 0) ||
          strlen(tenant.name) > LIMIT_TENANT_NAME_BYTES)))
        abort();
}

static void check_key(const char *body, size_t len)
{
    _cleanup_admin_key_ struct admin_key key = {0};
    struct err err = {0};

    if (admin_key_parse(body, len, &key, &err) < 0) {
        if (err.code == 0)
            abort();
        return;
    }
    if ((key.name && strlen(key.name) > LIMIT_TENANT_NAME_BYTES) ||
        (key.tenant && strlen(key.tenant) > LIMIT_TENANT_NAME_BYTES))
        abort();
}

/* A cursor that is taken is the one that its page would write. */
static void check_cursor(const char *text)
{
    struct http_reply reply = {.file_fd = -1};
    char again[PAGE_CURSOR_SIZE];
    struct page page;

    if (!page_parse(NULL, text, &page, &reply)) {
        if (reply.status != 400)
            abort();
        http_reply_empty(&reply, 400);
        return;
    }
    page_cursor(again, page.after, page.after_id);
    if (!page.has_place || strcmp(again, text) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\0';
    check_tenant(copy, size);
    check_key(copy, size);
    check_cursor(copy);
    free(copy);
    return 0;
}
