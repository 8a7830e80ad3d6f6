/* SPDX-License-Identifier: Apache-2.0 */
/* `subscriptions/listen`: changes of the lists, told until the request is cancelled. */
#include "api/json/json_walk.h"
#include "api/mcp/call.h"

static const struct {
    const char *filter, *method;
} lists[] = {
    {"toolsListChanged", "notifications/tools/list_changed"},
    {"resourcesListChanged", "notifications/resources/list_changed"},
};
#define N_LISTS (sizeof(lists) / sizeof(lists[0]))

static bool asks_for(struct json_slice filter, const char *name)
{
    struct json_slice value;

    return json_find(filter, name, &value) && json_slice_is(value, "true");
}

/* Begins parameters with the subscription they belong to. */
static struct json_writer begin(struct mcp_call *call)
{
    struct json_writer w = json_writer_init(4096);

    json_write_open(&w, NULL, '{');
    json_write_open(&w, "_meta", '{');
    json_write_value(&w, "io.modelcontextprotocol/subscriptionId", call->message.id);
    json_write_close(&w, '}');
    return w;
}

static void send(struct mcp_call *call, const char *method, struct json_writer *w)
{
    json_write_close(w, '}');
    if (w->out.error == 0)
        mcp_call_notify(call, method, &w->out);
    buf_finish(&w->out);
}

static void acknowledge(struct mcp_call *call, const bool wanted[N_LISTS])
{
    struct json_writer w = begin(call);

    json_write_open(&w, "notifications", '{');
    for (size_t i = 0; i < N_LISTS; i++) {
        if (wanted[i])
            json_write_bool(&w, lists[i].filter, true);
    }
    json_write_close(&w, '}');
    send(call, "notifications/subscriptions/acknowledged", &w);
}

static void tell(struct mcp_call *call, const char *method)
{
    struct json_writer w = begin(call);

    send(call, method, &w);
}

int mcp_listen(struct mcp_call *call, struct mcp_answer *answer)
{
    bool wanted[N_LISTS];
    struct json_slice filter;

    if (!json_find(call->message.params, "notifications", &filter) || !json_is_object(filter))
        return mcp_answer_fail(answer, MESSAGE_INVALID_PARAMS,
                               "\"notifications\" must be an object");
    for (size_t i = 0; i < N_LISTS; i++)
        wanted[i] = call->config->watch_ms > 0 && asks_for(filter, lists[i].filter);
    acknowledge(call, wanted);
    while (mcp_call_wait_change(call)) {
        for (size_t i = 0; i < N_LISTS; i++) {
            if (wanted[i])
                tell(call, lists[i].method);
        }
    }
    /* It was cancelled: nobody is answered. */
    return 0;
}
