/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm skill test`: a skill is run once for each of its tests, and the results compared. */
#include "api/cli/daemon.h"
#include "api/cli/expected.h"
#include "api/cli/files.h"
#include "api/cli/image_need.h"
#include "api/cli/remote.h"
#include "api/cli/run_files.h"
#include "api/cli/show.h"
#include "api/cli/skill_verbs.h"
#include "api/json/json_text.h"
#include "api/json/json_walk.h"
#include "api/skill/file_names.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(char *, cJSON_free)
CLEANUP_WITH(char *, skillvm_free)

#define STDERR_SHOWN 2000u

/* The tests of a skill's folder, by their files' names. */
struct suite {
    const struct cli *cli;
    const struct options *options;
    const char *path; /* of the skill */
    struct dirent **files;
    int n;
    unsigned passed, failed;
    cJSON *report; /* owned: an array; NULL where it is told as it comes */
};

/* One test as its file has it. */
struct test {
    struct buf text;
    cJSON *json;             /* owned: the same, read */
    struct json_slice input; /* of text; nothing in it where there is none */
};

static void test_finish(struct test *test)
{
    buf_finish(&test->text);
    cJSON_Delete(test->json);
    *test = (struct test){0};
}
#define _cleanup_test_ __attribute__((cleanup(test_finish)))

static void suite_finish(struct suite *s)
{
    while (s->n > 0)
        free(s->files[--s->n]);
    free(s->files);
    cJSON_Delete(s->report);
}

static int is_test(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && text_ends_with(entry->d_name, ".json");
}

/* The test's name: its file's without the end. */
static struct names_shown test_name(const struct dirent *file)
{
    char name[sizeof(file->d_name)];

    (void)snprintf(name, sizeof(name), "%.*s", (int)strlen(file->d_name) - 5, file->d_name);
    return names_shown(name);
}

static int find_tests(struct suite *s, struct err *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (stat(s->path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(err, ENOTDIR, "\"%s\" is no folder; tests are those of a skill's folder",
                       s->path);
    s->n = scandir(cli_join(s->path, "tests", path), &s->files, is_test, alphasort);
    if (s->n < 0) {
        s->n = 0;
        return err_set_errno(err, errno, "cannot open the folder of tests \"%s\"", path);
    }
    return s->n > 0
               ? 0
               : err_set(err, ENOENT,
                         "\"%s\" has no test; each is a file NAME.json, see `skillvm skill "
                         "test --help`",
                         path);
}

static int check_files(const cJSON *files, struct err *err)
{
    char clean[NAMES_PATH_MAX + 1];
    const cJSON *item;

    if (files && !cJSON_IsObject(files))
        return err_set(err, EINVAL, "\"files\" is no object of names and paths");
    cJSON_ArrayForEach(item, files) {
        if (!cJSON_IsString(item))
            return err_set(err, EINVAL, "\"files\" has what is no path");
        if (names_clean(item->valuestring, clean, err) < 0)
            return -EINVAL;
    }
    return 0;
}

static int check(const cJSON *json, struct err *err)
{
    static const char known[] = "input stdin args env script module timeout files expect";
    const cJSON *item, *expect = verbs_member(json, "expect");

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "a test is an object");
    cJSON_ArrayForEach(item, json) {
        if (!text_has_word(known, " ", item->string))
            return err_set(err, EINVAL, "there is no \"%.64s\" in a test, but %s", item->string,
                           known);
    }
    if (check_files(verbs_member(json, "files"), err) < 0)
        return -EINVAL;
    return expect ? expected_check(expect, err) : 0;
}

/* Fills in an empty one, which is the caller's to finish in any case. */
static int test_load(const struct suite *s, const struct dirent *file, struct test *test,
                     struct err *err)
{
    char path[PATH_MAX];
    struct json_slice all;
    int r;

    test->text = buf_init(FILES_INPUT_MAX);
    if (snprintf(path, sizeof(path), "@%s/tests/%s", s->path, file->d_name) >=
        (int)sizeof(path))
        return err_set(err, ENAMETOOLONG, "its path is too long");
    r = files_read_input(path, &test->text, err);
    if (r < 0)
        return r;
    r = json_text_check((const char *)test->text.data, test->text.len, &all, err);
    if (r < 0)
        return r;
    test->json = cJSON_ParseWithLength(all.data, all.len);
    if (!test->json)
        return err_no_memory(err);
    (void)json_find(all, "input", &test->input);
    return check(test->json, err);
}

/* All are looked at before the first one runs. */
static int check_tests(const struct suite *s, struct err *err)
{
    for (int i = 0; i < s->n; i++) {
        _cleanup_test_ struct test test = {0};
        int r = test_load(s, s->files[i], &test, err);

        if (r < 0) {
            err_prefix(err, "tests/%s", names_shown(s->files[i]->d_name).text);
            return r;
        }
    }
    return 0;
}

static int add_input(cJSON *request, struct json_slice input, struct err *err)
{
    char *text = input.len ? strndup(input.data, input.len) : NULL;
    bool ok = input.len == 0 || (text && cJSON_AddRawToObject(request, "input", text));

    free(text);
    return ok ? 0 : err_no_memory(err);
}

/* The input files, each opened below the skill's folder. */
static int add_files(const struct suite *s, const cJSON *wanted, struct run_files *files,
                     struct err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, wanted) {
        _cleanup_free_ char *argument = NULL;
        int r = asprintf(&argument, "%s=%s/%s", item->string, s->path, item->valuestring);

        if (r < 0) {
            argument = NULL;
            return err_no_memory(err);
        }
        r = run_files_add(files, argument, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What the daemon is asked: the test but its files and what it expects. */
static int make_request(const struct suite *s, const struct test *test, cJSON *request,
                        struct run_files *files, struct err *err)
{
    const cJSON *item;
    int r = add_input(request, test->input, err);

    if (r < 0)
        return r;
    cJSON_ArrayForEach(item, test->json) {
        if (text_has_word("input files expect", " ", item->string))
            continue;
        if (!cJSON_AddItemToObject(request, item->string, cJSON_Duplicate(item, true)))
            return err_no_memory(err);
    }
    r = add_files(s, verbs_member(test->json, "files"), files, err);
    return r < 0 ? r : run_files_send(files, s->cli, request, err);
}

/* Has the request run, with the skill as it is now. The result is the caller's. */
static int send_request(const struct suite *s, const cJSON *request, cJSON **ret,
                        struct err *err)
{
    char id[REMOTE_ID_SIZE] = "";
    const struct skillvm_events events = {
        .on_status = remote_note_id, .should_stop = remote_should_stop, .ctx = id};
    _cleanup_(cJSON_free) char *text = cJSON_PrintUnformatted(request);
    _cleanup_(skillvm_free) char *answer = NULL;
    _cleanup_fd_ int archive = -1;
    struct skillvm_error error;

    if (!text)
        return err_no_memory(err);
    if (skillvm_open_skill(s->path, &archive, &error) < 0)
        return err_set(err, error.code, "%s", error.message);
    if (skillvm_run(s->cli->client, text, archive, &events, &answer, &error) < 0) {
        if (id[0] && cli_interrupted())
            (void)skillvm_cancel(s->cli->client, id, NULL);
        return remote_explain(s->cli, &error, err);
    }
    *ret = cJSON_Parse(answer);
    return *ret ? 0 : err_set(err, EPROTO, "the daemon's result cannot be read");
}

/* The end of what the skill wrote to standard error, so that a failure can be understood. */
static void print_stderr(const cJSON *result)
{
    const char *text = verbs_text(result, "stderr");
    size_t len = text ? strlen(text) : 0;

    if (len > STDERR_SHOWN)
        text += len - STDERR_SHOWN;
    while (text && *text) {
        char line[STDERR_SHOWN + 1];

        len = strcspn(text, "\n");
        (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
        fputs("      | ", stdout);
        show_text(stdout, line);
        fputc('\n', stdout);
        text += len + (text[len] == '\n');
    }
}

static void print_test(const char *name, const cJSON *result, const cJSON *differences)
{
    const bool passed = !differences->child;
    const cJSON *item;
    char took[SHOW_SIZE];

    printf("%s  ", passed ? "ok  " : "FAIL");
    show_text(stdout, name);
    printf("  (%s)\n", show_ms(verbs_number(result, "duration_ms"), took));
    cJSON_ArrayForEach(item, differences) {
        fputs("      ", stdout);
        show_text(stdout, item->valuestring);
        fputc('\n', stdout);
    }
    if (!passed)
        print_stderr(result);
    (void)fflush(stdout);
}

/* Takes over result and differences. */
static int add_report(struct suite *s, const char *name, const cJSON *result,
                      cJSON *differences, struct err *err)
{
    cJSON *entry = cJSON_CreateObject();
    const char *id = verbs_text(result, "execution_id");
    bool ok =
        cJSON_AddStringToObject(entry, "test", name) &&
        cJSON_AddBoolToObject(entry, "passed", !differences->child) &&
        verbs_add_text(entry, "execution_id", id) &&
        cJSON_AddNumberToObject(entry, "duration_ms", verbs_number(result, "duration_ms"));

    ok = cJSON_AddItemToObject(entry, "differences", differences) && ok;
    ok = cJSON_AddItemToArray(s->report, entry) && ok;
    return ok ? 0 : err_no_memory(err);
}

static int tell(struct suite *s, const char *name, const cJSON *expect, const cJSON *result,
                struct err *err)
{
    cJSON *differences = expected_compare(expect, result);

    if (!differences)
        return err_no_memory(err);
    if (differences->child)
        s->failed++;
    else
        s->passed++;
    if (s->report)
        return add_report(s, name, result, differences, err);
    print_test(name, result, differences);
    cJSON_Delete(differences);
    return 0;
}

/* Runs a test with its input files; the result is the caller's. */
static int run_with(struct suite *s, const struct test *test, struct run_files *files,
                    cJSON **ret, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *request = cJSON_CreateObject();
    int r = make_request(s, test, request, files, err);

    return r < 0 ? r : send_request(s, request, ret, err);
}

static int run_test(struct suite *s, const struct dirent *file, struct err *err)
{
    _cleanup_(cJSON_Delete) cJSON *result = NULL;
    struct run_files files = {0};
    _cleanup_test_ struct test test = {0};
    int r = test_load(s, file, &test, err);

    if (r < 0)
        return r;
    r = run_with(s, &test, &files, &result, err);
    run_files_finish(&files, s->cli);
    if (r < 0)
        return r;
    return tell(s, test_name(file).text, verbs_member(test.json, "expect"), result, err);
}

static int run_tests(struct suite *s, struct err *err)
{
    for (int i = 0; i < s->n; i++) {
        int r = run_test(s, s->files[i], err);

        if (r < 0) {
            err_prefix(err, "tests/%s", names_shown(s->files[i]->d_name).text);
            return r;
        }
    }
    return 0;
}

/* By a daemon of this machine, or a server, which is neither started nor stopped. */
static int run_by(struct suite *s, struct err *err)
{
    const struct image_need need = {.path = s->path, .build = s->options->build_image};
    struct daemon_use use;
    int r = image_need_meet(s->cli, &need, err);

    if (r < 0)
        return r;
    if (s->cli->server[0])
        return run_tests(s, err);
    r = daemon_use_begin(s->cli, s->options->host, &use, err);
    if (r < 0)
        return r;
    r = run_tests(s, err);
    daemon_use_end(s->cli, &use);
    return r;
}

static int print_end(struct suite *s)
{
    int status = CLI_OK;

    if (s->report) {
        cJSON *json = cJSON_CreateObject();

        cJSON_AddNumberToObject(json, "passed", s->passed);
        cJSON_AddNumberToObject(json, "failed", s->failed);
        cJSON_AddItemToObject(json, "tests", s->report);
        s->report = NULL;
        status = verbs_print_tree(json);
    } else {
        printf("%u passed, %u failed\n", s->passed, s->failed);
    }
    return status == CLI_OK && s->failed > 0 ? CLI_NO : status;
}

int skill_test(const struct cli *cli, const struct options *options)
{
    __attribute__((cleanup(suite_finish))) struct suite s = {
        .cli = cli,
        .options = options,
        .path = options->n_args ? options->args[0] : ".",
        .report = options->json ? cJSON_CreateArray() : NULL,
    };
    struct err err = {0};

    if (options->build_image && cli->server[0])
        return help_usage_error("skill", "--build-image is for this machine, not for a server");
    if (options->json && !s.report)
        return verbs_no_memory();
    if (find_tests(&s, &err) < 0 || check_tests(&s, &err) < 0)
        return verbs_failed(&err);
    cli_catch_interrupts();
    if (run_by(&s, &err) < 0) {
        if (!cli_interrupted())
            return verbs_failed(&err);
        return 128 + cli_interrupted();
    }
    return print_end(&s);
}
