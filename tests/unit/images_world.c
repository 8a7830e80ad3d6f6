/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images_world.h"

#include "api/skill/entry.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

#define PYTHON                                                                                 \
    "language python 3.11\nmodule bs4\nmodule dateutil\nmodule jinja2\nmodule requests\n"      \
    "module yaml\npackage beautifulsoup4 4.11.2\npackage jinja2 3.1.2\n"                       \
    "package python-dateutil 2.8.2\npackage pyyaml 6.0\npackage requests 2.28.1\n"             \
    "program python3\nprogram python3.11\nprogram perl\n" STANDARD SHELL
#define STANDARD                                                                               \
    "standard __future__\nstandard argparse\nstandard csv\nstandard importlib\n"               \
    "standard json\nstandard os\nstandard pathlib\nstandard re\nstandard shutil\n"             \
    "standard subprocess\nstandard sys\nstandard tomllib\nstandard typing\n"
#define SHELL                                                                                  \
    "program bash\nprogram cat\nprogram curl\nprogram env\nprogram git\nprogram grep\n"        \
    "program jq\nprogram ls\nprogram mkdir\nprogram sed\nprogram nohup\n"                      \
    "program sh\nprogram timeout\nprogram which\nprogram xargs\n"
#define DATA                                                                                   \
    PYTHON "module PIL\nmodule docx\nmodule lxml\nmodule matplotlib\nmodule numpy\n"           \
           "module openpyxl\nmodule pandas\nmodule pdfminer\nmodule reportlab\n"               \
           "module scipy\nmodule seaborn\n"                                                    \
           "package lxml 4.9.2\npackage matplotlib 3.6.3\npackage numpy 1.24.2\n"              \
           "package openpyxl 3.0.9\npackage pandas 1.5.3\npackage pillow 9.4.0\n"              \
           "package python-docx 0.8.11\npackage scipy 1.10.1\npackage seaborn 0.12.2\n"        \
           "program convert\nprogram dot\nprogram ffmpeg\nprogram identify\n"                  \
           "program pandoc\nprogram pdftotext\nprogram tesseract\n"
#define NODE                                                                                   \
    PYTHON "language node 18.20.4\nnode ajv 6.12.6\nnode cheerio 1.0.0-rc.12\n"                \
           "node js-yaml 4.1.0\nnode lodash 4.17.21\nnode yaml 2.1.3\nprogram node\n"
/* Of an operator's own recipe, as is that of Ruby. */
#define WEB                                                                                    \
    "language node 20.11.1\nnode @kit/core 1.2.0\nnode docx 8.2.0\nnode lodash 4.17.21\n"      \
    "node pptxgenjs\nnode sharp\nprogram node\nprogram npx\n" SHELL
#define OFFICE DATA "module com\nmodule uno\nprogram libreoffice\nprogram soffice\n"

char world_folder[] = "/tmp/skill-images-XXXXXX";
struct image_list images;
static unsigned n_wrong;

void world_put(const char *name, const char *text, off_t size)
{
    char path[128];
    _cleanup_fd_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", world_folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    if (size)
        assert_int_equal(ftruncate(fd, size), 0);
}

int world_set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(world_folder));
    world_put("python.erofs", "", 100);
    world_put("python.manifest", PYTHON, 0);
    world_put("data.erofs", "", 300);
    world_put("data.manifest", DATA, 0);
    world_put("node.erofs", "", 150);
    world_put("node.manifest", NODE, 0);
    world_put("web.erofs", "", 200);
    world_put("web.manifest", WEB, 0);
    world_put("office.erofs", "", 400);
    world_put("office.manifest", OFFICE, 0);
    world_put("ruby.manifest", "program ruby\nprogram bash\nmodule torch\nprogram gnuplot\n",
              0);
    return image_list_read(world_folder, &images, NULL);
}

int world_tear_down(void **state)
{
    char command[64];

    (void)state;
    image_list_finish(&images);
    snprintf(command, sizeof(command), "rm -rf '%s'", world_folder);
    return system(command);
}

image_set_t world_set_of(const char *names)
{
    image_set_t set = names ? 0 : IMAGE_SET_ALL;

    for (unsigned i = 0; names && i < images.n; i++)
        if (strstr(names, images.list[i].name))
            set |= (image_set_t)1 << i;
    return set;
}

void world_read_skill(const struct world_file *files, struct skill *ret_skill,
                      struct needs *ret, char ret_lang[16])
{
    struct member members[FILES_MAX + 2] = {{.path = NULL}};
    _cleanup_fd_ int in = -1, tar = memfd_create("tar", MFD_CLOEXEC);
    _cleanup_skill_entry_ struct skill_entry entry = {0};
    struct skill_archive archive;
    struct err err = {0};
    bool has_md = false;
    size_t n = 0;

    for (; n < FILES_MAX && files[n].path; n++) {
        members[n] = (struct member){
            .path = files[n].path, .content = files[n].content, .mode = files[n].mode};
        has_md = has_md || strcmp(files[n].path, "SKILL.md") == 0;
    }
    if (!has_md)
        members[n] = (struct member){.path = "SKILL.md", .content = MD("")};
    in = make_archive(TAR, members);
    if (skill_archive_load(in, &archive_limits_default, NULL, tar, &archive, ret_skill, &err) <
            0 ||
        needs_read(tar, &archive, ret_skill, ret, &err) < 0)
        fail_msg("%s", err.message);
    (void)skill_entry_resolve(ret_skill, &archive, NULL, NULL, &entry, &err);
    snprintf(ret_lang, 16, "%s", entry.lang ? entry.lang : "");
    skill_archive_finish(&archive);
}

/* As the daemon does it, who then remembers. */
static int choose(const struct skill *skill, image_set_t allowed, struct needs *needs,
                  const char *lang, struct image_choice *ret)
{
    int r = skill->image ? image_choose_named(&images, allowed, skill->image, "SKILL.md", ret)
                         : -ENOENT;

    if (r == -ENOENT)
        r = image_choose_clear(&images, allowed, ret)
                ?: (image_choose(needs, &images, allowed, lang, ret), 0);
    return r < 0 ? r : 0;
}

/* Says what is wrong with a sample; all of them are looked at. */
__attribute__((format(printf, 2, 3))) static void wrong(const struct sample *sample,
                                                        const char *format, ...)
{
    va_list args;

    n_wrong++;
    print_error("%s: ", sample->about);
    va_start(args, format);
    vprint_error(format, args);
    va_end(args);
    print_error("\n");
}

static void check(const struct sample *sample)
{
    image_set_t allowed = world_set_of(sample->allowed);
    struct skill_strings warnings = {0};
    struct image_choice choice = {0};
    struct skill skill;
    char lang[16];
    struct needs needs = {0};
    int r;

    world_read_skill(sample->files, &skill, &needs, lang);
    r = choose(&skill, allowed, &needs, *lang ? lang : NULL, &choice);
    if (!sample->image && r != -EACCES)
        wrong(sample, "%d, and not refused", r);
    if (sample->image && (r < 0 || strcmp(images.list[choice.place].name, sample->image) != 0))
        wrong(sample, "%d, %s and not %s: %s", r, images.list[choice.place].name, sample->image,
              choice.why);
    if (sample->why && strcmp(choice.why, sample->why) != 0)
        wrong(sample, "why: \"%s\" and not \"%s\"", choice.why, sample->why);
    needs_look(&needs, &images, allowed, &choice);
    assert_int_equal(needs_warn(&needs, &warnings), 0);
    for (size_t i = 0; i < warnings.len; i++)
        if (i >= WANTED_MAX || !sample->want[i] || !strstr(warnings.items[i], sample->want[i]))
            wrong(sample, "not wanted: %s", warnings.items[i]);
    if (warnings.len < WANTED_MAX && sample->want[warnings.len])
        wrong(sample, "missing: %s", sample->want[warnings.len]);
    skill_strings_finish(&warnings);
    skill_finish(&skill);
    needs_finish(&needs);
}

void world_check(const struct sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(&samples[i]);
    assert_int_equal(n_wrong, 0);
}
