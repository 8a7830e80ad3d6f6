/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file beside an image: refused with the line and leaving nothing, or taken as lists that
 * are sorted, each once, of texts that go into JSON and logs, in which everything is found.
 * Each line is what a recipe brings, too.
 */
#include "api/skill/image_manifest.h"

#include "tests/fuzz/manifest_checks.h"
#include "tests/fuzz/scratch.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct skill_strings *a, const struct skill_strings *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

static void check_copy(const struct image_manifest *manifest)
{
    _cleanup_image_manifest_ struct image_manifest copy = {0};

    if (image_manifest_copy(manifest, &copy) < 0)
        abort();
    manifest_check(&copy);
    if (!is_same(&copy.modules, &manifest->modules) ||
        !is_same(&copy.node_modules, &manifest->node_modules) ||
        copy.python_minor != manifest->python_minor)
        abort();
}

static void bring(char *text)
{
    _cleanup_image_manifest_ struct image_manifest manifest = {.known = true};
    char *next, *line;

    for (line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        const size_t n = manifest.modules.len + manifest.programs.len +
                         manifest.node_modules.len + manifest.packages.len;
        const int r = image_manifest_bring(&manifest, line);

        if (r != 0 && r != -EINVAL)
            abort();
        if (r < 0 && n != manifest.modules.len + manifest.programs.len +
                              manifest.node_modules.len + manifest.packages.len)
            abort();
    }
    manifest_check(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_image_manifest_ struct image_manifest manifest = {0};
    struct err err = {0};
    char *text = strndup((const char *)data, size);
    int r;

    if (!text)
        return 0;
    scratch_put("own.manifest", data, size);
    r = image_manifest_read(scratch_folder(), "own", &manifest, &err);
    if (r < 0 ? (r != -EINVAL && r != -EFBIG) || err.code != -r || !err.message[0]
              : err.code != 0)
        abort();
    if (r == 0) {
        manifest_check(&manifest);
        check_copy(&manifest);
    }
    bring(text);
    free(text);
    return 0;
}
