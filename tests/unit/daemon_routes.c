/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's routes against api/openapi.yaml and docs/api.md: each is in all three. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/daemon.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MAX 64u

struct operations {
    char text[OPERATIONS_MAX][160]; /* "GET /v1/skills/:/:" */
    size_t n;
};

static void add(struct operations *o, const char *method, const char *path)
{
    assert_true(o->n < OPERATIONS_MAX);
    snprintf(o->text[o->n++], sizeof(o->text[0]), "%s %s", method, path);
}

static bool has(const struct operations *o, const char *text)
{
    for (size_t i = 0; i < o->n; i++) {
        if (strcmp(o->text[i], text) == 0)
            return true;
    }
    return false;
}

/* Whatever a parameter is called, it becomes ":". */
static void plain_path(const char *path, char *out, size_t size)
{
    size_t n = 0;

    while (*path && n + 1 < size) {
        if (*path == '{' || isupper((unsigned char)*path)) {
            out[n++] = ':';
            path += *path == '{' ? strcspn(path, "}") + 1 : strcspn(path, "/`? ");
        } else {
            out[n++] = *path == '*' ? ':' : *path;
            path++;
        }
    }
    out[n] = '\0';
}

static FILE *open_source(const char *name)
{
    const char *root = getenv("SKILLVM_TEST_SOURCE");
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root ? root : ".", name);
    f = fopen(path, "re");
    if (!f)
        fail_msg("%s cannot be read", path);
    return f;
}

static void read_routes(struct operations *o)
{
    char path[128];

    for (const struct http_route *r = daemon_routes; r->method; r++) {
        plain_path(r->path, path, sizeof(path));
        add(o, r->method, path);
    }
}

/* Paths have two spaces before them, methods four. */
static void read_openapi(struct operations *o)
{
    static const char *const methods[] = {"get", "post", "put", "patch", "delete"};
    FILE *f = open_source("api/openapi.yaml");
    char line[512], path[128] = "", method[16];

    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "  /", 3) == 0) {
            line[strlen(line) - 1] = '\0';
            plain_path(line + 2, path, sizeof(path));
        }
        for (size_t i = 0; path[0] && i < sizeof(methods) / sizeof(methods[0]); i++) {
            snprintf(method, sizeof(method), "    %s:", methods[i]);
            if (strcmp(line, method) != 0)
                continue;
            snprintf(method, sizeof(method), "%s", methods[i]);
            for (char *c = method; *c; c++)
                *c = (char)toupper((unsigned char)*c);
            add(o, method, path);
        }
    }
    fclose(f);
}

/* Rows of the table: "| `GET /v1/skills/NAME/VERSION` | …" */
static void read_docs(struct operations *o)
{
    FILE *f = open_source("docs/api.md");
    char line[1024], method[16], raw[128], path[128];

    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "| `%15[A-Z] %127[^`]`", method, raw) != 2)
            continue;
        plain_path(raw, path, sizeof(path));
        add(o, method, path);
    }
    fclose(f);
}

static void compare(const struct operations *a, const char *a_name, const struct operations *b,
                    const char *b_name)
{
    assert_true(a->n > 5);
    for (size_t i = 0; i < a->n; i++) {
        if (!has(b, a->text[i]))
            fail_msg("%s is in %s and not in %s", a->text[i], a_name, b_name);
    }
}

static void openapi_has_every_route(void **state)
{
    struct operations routes = {0}, openapi = {0};

    (void)state;
    read_routes(&routes);
    read_openapi(&openapi);
    compare(&routes, "the daemon", &openapi, "api/openapi.yaml");
    compare(&openapi, "api/openapi.yaml", &routes, "the daemon");
}

static void docs_have_every_route(void **state)
{
    struct operations routes = {0}, docs = {0};

    (void)state;
    read_routes(&routes);
    read_docs(&docs);
    compare(&routes, "the daemon", &docs, "docs/api.md");
    compare(&docs, "docs/api.md", &routes, "the daemon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openapi_has_every_route),
        cmocka_unit_test(docs_have_every_route),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
