/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skill/image_recipes: an image that an operator's recipe would make is told of by what that
 * and those it extends bring; a recipe that cannot be read is left out, and said to be.
 */
#include "api/skill/image_recipes.h"

#include "api/skill/image_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#define HEAD(name) "name: " name "\nsuite: bookworm\npackages: [bash]\n"

static char left[1024];

static void note(void *ctx, const char *file, const struct err *why)
{
    (void)ctx;
    size_t n = strlen(left);

    (void)snprintf(left + n, sizeof(left) - n, "%s: %s\n", file, why->message);
}

static void put(const char *path, const char *text)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static int set_up(void **state)
{
    static char top[32];

    strcpy(top, "/tmp/images-recipes-XXXXXX");
    assert_non_null(mkdtemp(top));
    assert_int_equal(chdir(top), 0);
    assert_int_equal(mkdir("share", 0700) | mkdir("made", 0700) | mkdir("made/recipes", 0700),
                     0);
    put("share/python.erofs", "");
    put("share/python.manifest", "language python 3.11\nmodule yaml\nprogram bash\n");
    put("share/data.manifest", "module numpy\nprogram dot\n");
    left[0] = '\0';
    *state = top;
    return 0;
}

static int tear_down(void **state)
{
    char command[64];

    assert_int_equal(chdir("/"), 0);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
    return system(command);
}

static void read_all(struct image_list *list)
{
    struct err err = {0};

    assert_int_equal(image_list_read("share", list, &err), 0);
    image_recipes_read("made", list, note, NULL);
    assert_int_equal(list->n_here, 1);
}

/* Its modules, programs and modules of Node's between spaces; NULL: nothing is told of it. */
static void brings(const struct image_list *list, const char *name, const char *want)
{
    const struct image_listed *image = image_list_any(list, name);
    char text[512] = "";

    if (!image || !want) {
        assert_true(!image && !want);
        return;
    }
    assert_true(!image->here && image->manifest.known);
    assert_string_equal(image->manifest.name, name);
    const struct skill_strings *const all[] = {
        &image->manifest.modules, &image->manifest.programs, &image->manifest.node_modules};

    for (size_t i = 0; i < 3; i++)
        for (size_t at = 0; at < all[i]->len; at++)
            (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s",
                           all[i]->items[at]);
    assert_string_equal(text, want);
}

static void what_recipes_bring_is_told(void **state)
{
    _cleanup_image_list_ struct image_list list = {0};

    (void)state;
    put("made/recipes/geo.yaml",
        "name: geo\nextends: python.yaml\nwarm: []\nfiles: {etc/own: mine}\n"
        "brings: [module shapely, program gdalinfo, \"node @kit/core\"]\n");
    put("made/recipes/maps.yaml", "name: maps\nextends: geo.yaml\nbrings: [module pyproj]\n");
    put("made/recipes/sums.yaml", "name: sums\nextends: data.yaml\nbrings: [module sums]\n");
    /* By its name nothing of it would be built. */
    put("made/recipes/other.yaml", HEAD("another") "brings: [module other]\n");
    put("made/recipes/silent.yaml", HEAD("silent"));
    put("made/recipes/README", "no recipe");
    /* The installation tells of that itself. */
    put("made/recipes/data.yaml", HEAD("data") "brings: [module mine]\n");
    read_all(&list);
    brings(&list, "geo", " shapely gdalinfo @kit/core");
    brings(&list, "maps", " pyproj shapely gdalinfo @kit/core");
    brings(&list, "sums", " mine sums");
    brings(&list, "other", NULL);
    brings(&list, "another", NULL);
    brings(&list, "silent", "");
    brings(&list, "data", " numpy dot");
    assert_string_equal(left, "");
}

/* Of one image it is said that there could be others. */
static void one_that_is_here_is_called_that(void **state)
{
    _cleanup_image_list_ struct image_list list = {0};
    struct image_choice choice;

    (void)state;
    read_all(&list);
    assert_true(image_choose_clear(&list, IMAGE_SET_ALL, &choice) > 0);
    assert_string_equal(choice.why, "the only one that is here");
}

/* Where what it extends does not lie beside it, that is the installation's. */
static void what_others_bring_comes_with_it(void **state)
{
    _cleanup_image_list_ struct image_list list = {0};

    (void)state;
    put("made/recipes/sums.yaml", "name: sums\nextends: data.yaml\nbrings: [module sums]\n");
    read_all(&list);
    brings(&list, "sums", " numpy sums dot");
}

static void what_is_none_is_left_out(void **state)
{
    _cleanup_image_list_ struct image_list list = {0};
    char long_text[300000];

    (void)state;
    memset(long_text, '#', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    put("made/recipes/a.yaml", "name: a\nbrings: [language python 3.9]\n");
    put("made/recipes/b.yaml", "name: b\n\nbrings:\n  - [module x]\n");
    put("made/recipes/c.yaml", "- a list\n");
    put("made/recipes/d.yaml", "name: [d\n");
    put("made/recipes/e.yaml", "name: e\nextends: e.yaml\n");
    put("made/recipes/f.yaml", "name: f\nextends: ../../share/x.yaml\n");
    put("made/recipes/g.yaml", long_text);
    assert_int_equal(mkfifo("made/recipes/h.yaml", 0600), 0);
    put("made/recipes/z.yaml", HEAD("z") "brings: [module z]\n");
    read_all(&list);
    for (int c = 'a'; c <= 'h'; c++)
        brings(&list, (const char[]){(char)c, '\0'}, NULL);
    brings(&list, "z", " z");
    static const char *const parts[] = {
        "a.yaml: line 2: brings has \"module NAME\", \"program NAME\" or \"node NAME\"\n",
        "b.yaml: line 4: brings has ",
        "c.yaml: it is no recipe\n",
        "d.yaml: line ",
        "e.yaml: too many recipes extend one another\n",
        "f.yaml: \"../../share/x.yaml\", which it extends, is no recipe\n",
        "g.yaml: over 262144 bytes\n",
        "h.yaml: cannot read it: "};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strstr(left, parts[i]))
            fail_msg("no %s in %s", parts[i], left);
}

static void what_has_no_room_is_not_told(void **state)
{
    _cleanup_image_list_ struct image_list list = {0};

    (void)state;
    for (unsigned i = 0; i < IMAGE_LIST_MAX + 4; i++) {
        char path[64], text[128];

        (void)snprintf(path, sizeof(path), "made/recipes/r%02u.yaml", i);
        (void)snprintf(text, sizeof(text), HEAD("r%02u") "brings: [module m]\n", i);
        put(path, text);
    }
    read_all(&list);
    assert_int_equal(list.n, IMAGE_LIST_MAX);
    brings(&list, "r00", " m");
    brings(&list, "r35", NULL);
}

/* Whatever is listed is text that may stand in JSON, and numbers are numbers. */
static void what_is_no_text_is_refused(void **state)
{
    static const char *const bad[] = {
        "module \xff\n",          "program \033[2J\n",       "later \177\n",
        "language python 3.-1\n", "language python 3. 11\n", "language python 3.4294967307\n"};
    _cleanup_image_list_ struct image_list list = {0};

    (void)state;
    put("made/recipes/geo.yaml", HEAD("geo") "brings: [\"module a\\e[2J\"]\n");
    read_all(&list);
    brings(&list, "geo", NULL);
    assert_string_equal(left, "geo.yaml: line 4: brings has \"module NAME\", \"program NAME\" "
                              "or \"node NAME\"\n");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct image_manifest manifest = {0};
        struct err err = {0};

        put("share/other.manifest", bad[i]);
        assert_int_equal(image_manifest_read("share", "other", &manifest, &err), -EINVAL);
        assert_non_null(strstr(err.message, "other.manifest: line 1 "));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_recipes_bring_is_told),      TEST(one_that_is_here_is_called_that),
        TEST(what_others_bring_comes_with_it), TEST(what_is_none_is_left_out),
        TEST(what_has_no_room_is_not_told),    TEST(what_is_no_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
