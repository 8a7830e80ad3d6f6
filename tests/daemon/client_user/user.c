/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody else's, in C and in C++ alike: argv[1] is a daemon's socket. It prints
 * a line for each thing that went as it should.
 */
#include <skillvm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char seen[256];
static char first_id[64];

static int on_status(void *ctx, const char *execution_id, const char *status)
{
    (void)ctx;
    strncat(seen, status, sizeof(seen) - strlen(seen) - 1);
    strncat(seen, " ", sizeof(seen) - strlen(seen) - 1);
    snprintf(first_id, sizeof(first_id), "%.60s", execution_id);
    return 0;
}

static int on_result(void *ctx, const char *json, size_t len)
{
    *(int *)ctx = len == strlen(json);
    return 0;
}

static void check(int ok, const char *what, const struct skillvm_error *error)
{
    if (!ok) {
        printf("failed: %s: %s\n", what, error->message);
        exit(1);
    }
    printf("ok: %s\n", what);
}

int main(int argc, char **argv)
{
    struct skillvm_error error = {0, 0, 0, "", ""};
    struct skillvm_events events;
    struct skillvm_filter filter;
    struct skillvm *client = NULL;
    char *json = NULL, part[96];
    int got_result = 0, r;
    size_t len = 0;
    FILE *f = tmpfile();

    if (argc < 2 || !f)
        return 2;
    check(strcmp(skillvm_version(), LIBRARY_VERSION) == 0, "version", &error);
    r = skillvm_open(argv[1], NULL, &client, &error);
    check(r == 0, "open", &error);
    check(skillvm_ready(client, &error) == 0, "ready", &error);

    r = skillvm_list_skills(client, &json, &error);
    check(r == 0 && strstr(json, "\"name\":\"demo\""), "list skills", &error);
    skillvm_free(json);
    r = skillvm_get_skill(client, "demo", NULL, &json, &error);
    check(r == 0 && strstr(json, "\"version\":\"1.0\""), "get a skill", &error);
    skillvm_free(json);

    memset(&events, 0, sizeof(events));
    events.on_status = on_status;
    events.on_result = on_result;
    events.ctx = &got_result;
    r = skillvm_run(client, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"files\"}}", -1, &events,
                    &json, &error);
    check(r == 0 && strstr(json, "\"status\":\"success\"") && got_result, "run", &error);
    check(strstr(seen, "running") && strncmp(first_id, "exec_", 5) == 0, "events", &error);
    snprintf(part, sizeof(part), "\"execution_id\":\"%s\"", first_id);
    check(strstr(json, part) != NULL, "the id of the events is that of the result", &error);
    skillvm_free(json);

    r = skillvm_follow(client, first_id, NULL, &json, &error);
    check(r == 0 && strstr(json, part), "follow", &error);
    skillvm_free(json);
    memset(&filter, 0, sizeof(filter));
    filter.skill = "demo";
    filter.limit = 5;
    r = skillvm_list_executions(client, &filter, &json, &error);
    check(r == 0 && strstr(json, part), "list executions", &error);
    skillvm_free(json);
    r = skillvm_get_logs(client, first_id, &json, &len, &error);
    check(r == 0 && json[len] == '\0', "logs", &error);
    skillvm_free(json);

    r = skillvm_download(client, first_id, "a.txt", fileno(f), 0, &error);
    check(r == 0 && fseek(f, 0, SEEK_END) == 0 && ftell(f) == 5, "one file", &error);
    r = skillvm_download(client, first_id, NULL, fileno(f), 10, &error);
    check(r == -7 && error.code == 7, "too many files", &error); /* E2BIG */
    r = skillvm_download(client, first_id, NULL, fileno(f), 0, &error);
    check(r == 0, "all files", &error);

    r = skillvm_list_tools(client, "openai", &json, &error);
    check(r == 0 && strstr(json, "\"name\":\"demo\""), "list tools", &error);
    skillvm_free(json);
    r = skillvm_call_tool(client, "demo", "{\"n\":1}", &events, &json, &error);
    check(r == 0 && strstr(json, "\"status\":\"success\""), "call a tool", &error);
    skillvm_free(json);
    r = skillvm_call_tool(client, "no\"ne", NULL, NULL, NULL, &error);
    check(r < 0 && error.http_status == 404, "call no tool", &error);
    check(fseek(f, 0, SEEK_SET) == 0, "seek", &error);
    r = skillvm_upload(client, fileno(f), "in.txt", &json, &error);
    check(r == 0 && strstr(json, "\"id\":\"file_"), "upload", &error);
    skillvm_free(json);

    r = skillvm_cancel(client, first_id, &error);
    check(r < 0 && error.http_status == 409, "cancel what has ended", &error);
    r = skillvm_request(client, "GET", "/v1/nothing", NULL, &json, &error);
    check(r < 0 && error.http_status == 404 && error.name[0], "any request", &error);
    r = skillvm_remove_skill(client, "demo", "9", &error);
    check(r < 0 && error.http_status == 404, "remove what is not there", &error);
    skillvm_close(client);
    fclose(f);
    puts("all is well");
    return 0;
}
