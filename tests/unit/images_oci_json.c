/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images/oci_json: each document of a container image that is damaged is refused by a message
 * of its own, and so is each name that a layer may not have.
 */
#include "images/oci_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

#define A64      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define D(x)     "\"digest\":\"sha256:" x "\",\"size\":7"
#define MANIFEST "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
#define INDEX    "\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
#define NAMED(x) ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" x "\"}"
#define CPU(x)   ",\"platform\":{\"os\":\"linux\",\"architecture\":\"" x "\"}"

enum reader { LAYOUT, CHOICE, READ_MANIFEST, SAVED, CONFIG };

static int read_one(enum reader reader, const char *text, size_t len, struct err *err)
{
    static struct oci_image image;
    struct oci_choice choice;

    image.n_layers = 1;
    switch (reader) {
    case LAYOUT:
        return oci_read_layout(text, len, err);
    case CHOICE:
        return oci_read_index(text, len, &choice, err);
    case READ_MANIFEST:
        return oci_read_manifest(text, len, &image, err);
    case SAVED:
        return oci_read_saved(text, len, &image, err);
    case CONFIG:
        return oci_read_config(text, len, &image, err);
    }
    return -EINVAL;
}

static void damaged_documents_are_refused(void **state)
{
    static const struct {
        enum reader reader;
        const char *text;
        int result;
        const char *message;
    } cases[] = {
        {LAYOUT, "", -EINVAL, "oci-layout is not JSON"},
        {LAYOUT, "[]", -EINVAL, "oci-layout has no imageLayoutVersion"},
        {LAYOUT, "{\"imageLayoutVersion\":\"2.\\u001b0\"}", -EINVAL,
         "oci-layout is of version 2.?0, not 1.0.0"},
        {CHOICE, "{", -EINVAL, "the index is not JSON"},
        {CHOICE, "{\"manifests\":{}}", -EINVAL, "the index has no list of manifests"},
        {CHOICE, "{\"manifests\":[]}", -ENOENT, "the index names no image"},
        {CHOICE, "{\"manifests\":[7]}", -EINVAL, "the entry of the index is no descriptor"},
        {CHOICE, "{\"manifests\":[{" D(A64) ",\"mediaType\":\"text/html\"}]}", -ENOENT,
         "the index names no image"},
        {CHOICE, "{\"manifests\":[{\"size\":1}]}", -EINVAL,
         "the entry of the index: \"\" is no SHA-256 digest"},
        {CHOICE, "{\"manifests\":[{\"digest\":\"md5:ab\"}]}", -EINVAL,
         "the entry of the index: \"md5:ab\" is no SHA-256 digest"},
        {CHOICE, "{\"manifests\":[{\"digest\":\"sha256:../../../etc/passwd\"}]}", -EINVAL,
         "the entry of the index: \"sha256:../../../etc/passwd\" is no SHA-256 digest"},
        {CHOICE, "{\"manifests\":[{\"digest\":\"sha256:" A64 "\"}]}", -EINVAL,
         "the entry of the index has no size"},
        {CHOICE, "{\"manifests\":[{\"digest\":\"sha256:" A64 "\",\"size\":-1}]}", -EINVAL,
         "the entry of the index has no size"},
        {CHOICE, "{\"manifests\":[{\"digest\":\"sha256:" A64 "\",\"size\":1e300}]}", -EINVAL,
         "the entry of the index has no size"},
        {CHOICE,
         "{\"manifests\":[{" MANIFEST D(A64) CPU("arm64") "},{" MANIFEST D(B64)
             CPU("s390x") "}]}",
         -ENOENT, "there is nothing for linux/amd64 in it, only for linux/arm64, linux/s390x"},
        {CHOICE,
         "{\"manifests\":[{" MANIFEST D(A64) NAMED("one:1") "},{" MANIFEST D(B64)
             NAMED("two") "}]}",
         -ENOTUNIQ, "it holds several images (one:1, two): save one alone"},
        {READ_MANIFEST, "null", -EINVAL, "the manifest has no list of layers"},
        {READ_MANIFEST, "{\"layers\":[]}", -EINVAL, "the image has no layers"},
        {READ_MANIFEST, "{\"layers\":[{" D(A64) "}]}", -EINVAL,
         "the manifest's configuration is no descriptor"},
        {READ_MANIFEST, "{\"layers\":[[]],\"config\":{" D(A64) "}}", -EINVAL,
         "a layer is no descriptor"},
        {READ_MANIFEST,
         "{\"layers\":[{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+encrypted\"," D(
             A64) "}],\"config\":{" D(A64) "}}",
         -EINVAL, "a layer is encrypted (application/vnd.oci.image.layer.v1.tar+encrypted)"},
        {READ_MANIFEST,
         "{\"layers\":[{\"mediaType\":\"application/wasm\"," D(A64) "}],\"config\":{" D(
             A64) "}}",
         -EINVAL, "a layer is no tar (application/wasm): this is no container image"},
        {SAVED, "{}", -EINVAL, "manifest.json is no list of images"},
        {SAVED, "[]", -EINVAL, "manifest.json names no image"},
        {SAVED, "[{\"RepoTags\":[\"a:1\"]},{}]", -ENOTUNIQ,
         "it holds several images (a:1, one without a name): save one alone"},
        {SAVED, "[{\"Config\":\"c\"}]", -EINVAL, "manifest.json has no list of layers"},
        {SAVED, "[{\"Layers\":[\"l\"]}]", -EINVAL,
         "the configuration of manifest.json is no text"},
        {SAVED, "[{\"Config\":\"/etc/passwd\",\"Layers\":[\"l\"]}]", -EINVAL,
         "the configuration of manifest.json: the absolute path \"/etc/passwd\""},
        {SAVED, "[{\"Config\":\"c\",\"Layers\":[\"a/../../l\"]}]", -EINVAL,
         "a layer of manifest.json: \"..\" in the path \"a/../../l\""},
        {SAVED, "[{\"Config\":\"c\",\"Layers\":[\".\"]}]", -EINVAL,
         "a layer of manifest.json names no file"},
        {SAVED, "[{\"Config\":\"c\",\"Layers\":[{}]}]", -EINVAL,
         "a layer of manifest.json is no text"},
        {CONFIG, "{}", -EINVAL, "the configuration does not say what platform it is for"},
        {CONFIG, "{\"os\":\"windows\",\"architecture\":\"amd64\"}", -ENOENT,
         "the image is for windows/amd64, not for linux/amd64"},
        {CONFIG, "{\"os\":\"linux\",\"architecture\":\"amd64\"}", -EINVAL,
         "the configuration has no list of diff_ids"},
        {CONFIG, "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[]}}",
         -EINVAL, "the configuration is of 0 layers, the manifest of 1"},
        {CONFIG, "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[1]}}",
         -EINVAL, "a layer of the configuration: \"\" is no SHA-256 digest"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};

        assert_int_equal(read_one(cases[i].reader, cases[i].text, strlen(cases[i].text), &err),
                         cases[i].result);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(err.code, -cases[i].result);
    }
}

static void what_is_too_much_is_refused(void **state)
{
    char *text = malloc(OCI_JSON_MAX + 2), *at = text;
    struct err err = {0};

    (void)state;
    assert_non_null(text);
    memset(text, ' ', OCI_JSON_MAX + 1);
    assert_int_equal(read_one(SAVED, text, OCI_JSON_MAX + 1, &err), -EFBIG);
    assert_string_equal(err.message, "manifest.json is over 1048576 bytes");
    err = (struct err){0};
    assert_int_equal(read_one(SAVED, "[]\0", 3, &err), -EINVAL);
    assert_string_equal(err.message, "manifest.json holds a byte of zero");
    at += sprintf(at, "{\"config\":{" D(A64) "},\"layers\":[{}");
    for (unsigned i = 0; i < OCI_LAYERS_MAX; i++)
        at += sprintf(at, ",{}");
    at += sprintf(at, "]}");
    err = (struct err){0};
    assert_int_equal(read_one(READ_MANIFEST, text, (size_t)(at - text), &err), -E2BIG);
    assert_string_equal(err.message, "the image has 129 layers, more than 128");
    at = text + sprintf(text, "{\"manifests\":[{}");
    for (unsigned i = 0; i < OCI_LISTED_MAX; i++)
        at += sprintf(at, ",{}");
    at += sprintf(at, "]}");
    err = (struct err){0};
    assert_int_equal(read_one(CHOICE, text, (size_t)(at - text), &err), -E2BIG);
    assert_string_equal(err.message, "the index lists more than 256 images");
    memset(text, '[', OCI_JSON_MAX);
    err = (struct err){0};
    assert_int_equal(read_one(SAVED, text, OCI_JSON_MAX, &err), -EINVAL);
    assert_string_equal(err.message, "manifest.json is not JSON");
    free(text);
}

static void the_entry_for_this_platform_is_chosen(void **state)
{
    static const char *const texts[] = {
        "{\"manifests\":[{" MANIFEST D(B64) CPU("arm64") "},{" MANIFEST D(A64)
            CPU("amd64") "}]}",
        "{\"manifests\":[{" MANIFEST D(A64) "}]}",
        /* A statement about it, and its second name. */
        "{\"manifests\":[{" MANIFEST D(A64) NAMED("x") "},{" MANIFEST D(A64) NAMED(
            "y") "},"
                 "{" MANIFEST D(
                     B64) ",\"platform\":{\"os\":\"unknown\",\"architecture\":\"unknown\"}}]}",
    };
    struct oci_choice choice;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(oci_read_index(texts[i], strlen(texts[i]), &choice, &err), 0);
        assert_string_equal(choice.blob.digest, A64);
        assert_string_equal(choice.blob.name, "blobs/sha256/" A64);
        assert_int_equal(choice.blob.size, 7);
        assert_false(choice.is_index);
    }
    assert_string_equal(choice.title, "x");
    const char *nested = "{\"manifests\":[{" INDEX D(A64) NAMED("a\\nb") "}]}";
    assert_int_equal(oci_read_index(nested, strlen(nested), &choice, &err), 0);
    assert_true(choice.is_index);
    assert_string_equal(choice.title, "a?b");
}

static void paths_stay_inside(void **state)
{
    char path[OCI_PATH_MAX], deep[600] = "", name[300];
    static const struct {
        const char *given, *clean, *message;
    } cases[] = {
        {"./", "", NULL},
        {"./usr//bin/./x/", "usr/bin/x", NULL},
        {"...", "...", NULL},
        {"", NULL, "an empty path"},
        {"/etc", NULL, "the absolute path \"/etc\""},
        {"..", NULL, "\"..\" in the path \"..\""},
        {"a/../b", NULL, "\"..\" in the path \"a/../b\""},
        {"a/..", NULL, "\"..\" in the path \"a/..\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};

        assert_int_equal(oci_path(cases[i].given, path, &err), cases[i].clean ? 0 : -EINVAL);
        assert_string_equal(cases[i].clean ? path : err.message,
                            cases[i].clean ? cases[i].clean : cases[i].message);
    }
    struct err err = {0};
    for (unsigned i = 0; i <= OCI_DEPTH_MAX; i++)
        strcat(deep, "d/");
    assert_int_equal(oci_path(deep, path, &err), -E2BIG);
    assert_non_null(strstr(err.message, "more than 128 folders in one another"));
    memset(name, 'n', 256);
    name[256] = '\0';
    err = (struct err){0};
    assert_int_equal(oci_path(name, path, &err), -E2BIG);
    assert_non_null(strstr(err.message, "a name of more than 255 bytes"));
    char *longest = malloc(2 * OCI_PATH_MAX);
    assert_non_null(longest);
    longest[0] = '\0';
    name[200] = '\0';
    for (unsigned i = 0; i < 11; i++)
        strcat(strcat(longest, name), "/");
    err = (struct err){0};
    assert_int_equal(oci_path(longest, path, &err), -E2BIG);
    assert_non_null(strstr(err.message, "a path of more than 2047 bytes"));
    free(longest);
}

static void marks_are_taken_off(void **state)
{
    static const struct {
        const char *given, *left;
        enum oci_mark mark;
    } cases[] = {
        {"a/b", "a/b", OCI_MARK_NONE},         {"a/.wh.b", "a/b", OCI_MARK_GONE},
        {".wh.b", "b", OCI_MARK_GONE},         {"a/.wh..wh..opq", "a", OCI_MARK_OPAQUE},
        {".wh..wh..opq", "", OCI_MARK_OPAQUE}, {"a/.wh..wh.plnk", "a", OCI_MARK_IGNORED},
        {".wh.a/b", ".wh.a/b", OCI_MARK_NONE}, {"a/.wh", "a/.wh", OCI_MARK_NONE},
    };
    static const char *const nothing[] = {".wh.", "a/.wh..", "a/.wh..."};
    char path[OCI_PATH_MAX];
    enum oci_mark mark;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(path, cases[i].given);
        assert_int_equal(oci_take_mark(path, &mark, NULL), 0);
        assert_int_equal(mark, cases[i].mark);
        assert_string_equal(path, cases[i].left);
    }
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        struct err err = {0};

        strcpy(path, nothing[i]);
        assert_int_equal(oci_take_mark(path, &mark, &err), -EINVAL);
        assert_non_null(strstr(err.message, "is of nothing"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_documents_are_refused),
        cmocka_unit_test(what_is_too_much_is_refused),
        cmocka_unit_test(the_entry_for_this_platform_is_chosen),
        cmocka_unit_test(paths_stay_inside),
        cmocka_unit_test(marks_are_taken_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
