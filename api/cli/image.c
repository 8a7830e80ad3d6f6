/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm image …`: what images there are, and what is in them. */
#include "api/cli/image_recipes.h"
#include "api/cli/show.h"
#include "api/cli/table.h"
#include "api/cli/verbs.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

/* Where it is from, for a person. Returns out. */
static const char *show_origin(const struct image_stored *image, char out[IMAGE_TEXT_SIZE])
{
    if (image->archive[0] && image->title[0])
        (void)snprintf(out, IMAGE_TEXT_SIZE, "%.120s (%.120s)", image->title, image->archive);
    else
        (void)snprintf(out, IMAGE_TEXT_SIZE, "%s",
                       image->archive[0]  ? image->archive
                       : image->recipe[0] ? image->recipe
                                          : "the installation");
    return out;
}

static const char *show_python(const struct image_manifest *manifest, char out[SHOW_SIZE])
{
    if (!manifest->known)
        return "?";
    (void)snprintf(out, SHOW_SIZE, "3.%u", manifest->python_minor);
    return manifest->python_minor > 0 ? out : NULL;
}

static void add_known(cJSON *json, const struct image_stored *image)
{
    char python[SHOW_SIZE];
    const struct image_manifest *manifest = &image->manifest;

    cJSON_AddBoolToObject(json, "known", manifest->known);
    if (manifest->python_minor > 0)
        cJSON_AddStringToObject(json, "python", show_python(manifest, python));
    else
        cJSON_AddNullToObject(json, "python");
    cJSON_AddBoolToObject(json, "pypy", manifest->is_pypy);
    if (manifest->node[0])
        cJSON_AddStringToObject(json, "node", manifest->node);
    else
        cJSON_AddNullToObject(json, "node");
    cJSON_AddBoolToObject(json, "bash", image_manifest_has(&manifest->programs, "bash"));
    cJSON_AddBoolToObject(json, "warm", manifest->warm_python);
    if (manifest->memory_bytes > 0)
        cJSON_AddNumberToObject(json, "memory_bytes", (double)manifest->memory_bytes);
    else
        cJSON_AddNullToObject(json, "memory_bytes");
}

static cJSON *describe(const struct image_stored *image)
{
    cJSON *json = cJSON_CreateObject(), *from = cJSON_AddObjectToObject(json, "from");
    char path[PATH_MAX];

    cJSON_AddStringToObject(json, "name", image->name);
    cJSON_AddStringToObject(json, "path",
                            image_path(image->folder, image->name, IMAGE_ITSELF, path));
    cJSON_AddNumberToObject(json, "bytes", (double)image->bytes);
    cJSON_AddBoolToObject(json, "installation", image->is_shipped);
    (void)verbs_add_text(from, "recipe", image->recipe[0] ? image->recipe : NULL);
    (void)verbs_add_text(from, "archive", image->archive[0] ? image->archive : NULL);
    (void)verbs_add_text(from, "title", image->title[0] ? image->title : NULL);
    (void)verbs_add_text(from, "sha256", image->digest[0] ? image->digest : NULL);
    add_known(json, image);
    return json;
}

static int print_list_json(const struct image_store *store, const struct skill_strings *recipes)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "images");

    for (unsigned i = 0; i < store->n; i++)
        cJSON_AddItemToArray(list, describe(&store->list[i]));
    verbs_add_strings(json, "not_built", recipes);
    return verbs_print_tree(json);
}

static void add_recipes(struct table *table, const struct skill_strings *recipes)
{
    for (size_t i = 0; i < recipes->len; i++) {
        char from[IMAGE_TEXT_SIZE];

        (void)snprintf(from, sizeof(from), "not built: skillvm image build %s",
                       recipes->items[i]);
        table_add(table,
                  (const char *const[]){recipes->items[i], NULL, NULL, NULL, NULL, from});
    }
}

static int list(const struct cli *cli, const struct options *options)
{
    static const char *const header[] = {"NAME", "SIZE", "PYTHON", "NODE", "WARM", "FROM"};
    _cleanup_skill_strings_ struct skill_strings recipes = {0};
    _cleanup_image_store_ struct image_store store = {0};
    struct table table;
    struct err err = {0};

    if (image_store_read(cli, &store, &err) < 0)
        return verbs_failed(&err);
    if (image_recipes_find(cli, &store, &recipes) < 0)
        return verbs_no_memory();
    if (options->json)
        return print_list_json(&store, &recipes);
    table = table_begin(header, 6);
    for (unsigned i = 0; i < store.n; i++) {
        const struct image_stored *image = &store.list[i];
        char bytes[SHOW_SIZE], python[SHOW_SIZE], origin[IMAGE_TEXT_SIZE];

        table_add(&table,
                  (const char *const[]){image->name, show_bytes((double)image->bytes, bytes),
                                        show_python(&image->manifest, python),
                                        image->manifest.node[0] ? image->manifest.node : NULL,
                                        image->manifest.warm_python ? "yes" : "no",
                                        show_origin(image, origin)});
    }
    add_recipes(&table, &recipes);
    return table_end(&table, 0) < 0 ? verbs_no_memory() : CLI_OK;
}

/* The SHA-256 of the image's file. 0 or -errno with err. */
static int digest(const struct image_stored *image, char ret[SHA256_HEX_SIZE], struct err *err)
{
    char path[PATH_MAX];
    _cleanup_fd_ int fd =
        open(image_path(image->folder, image->name, IMAGE_ITSELF, path), O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : sha256_of_fd(fd, ret);
    return r < 0 ? err_set_errno(err, -r, "%s", path) : 0;
}

/* The lines of the list of Debian packages, "name_version_architecture.deb[ digest]". */
static void add_debian(cJSON *json, const struct image_stored *image)
{
    cJSON *array = cJSON_AddArrayToObject(json, "debian_packages");
    char path[PATH_MAX], line[512];
    FILE *lines = fopen(image_path(image->folder, image->name, ".packages", path), "re");

    while (lines && fgets(line, sizeof(line), lines)) {
        line[strcspn(line, " \n")] = '\0';
        cJSON_AddItemToArray(array, cJSON_CreateString(line));
    }
    if (lines)
        (void)fclose(lines);
}

static void print_names(const char *label, const cJSON *array)
{
    const cJSON *item;

    printf("%-10s", label);
    cJSON_ArrayForEach(item, array) {
        putchar(' ');
        show_text(stdout, cJSON_GetStringValue(item));
    }
    puts(cJSON_GetArraySize(array) > 0 ? "" : " -");
}

static int print_one(const struct image_stored *image, const cJSON *json)
{
    char bytes[SHOW_SIZE], python[SHOW_SIZE], origin[IMAGE_TEXT_SIZE];

    show_field("name", 10, image->name);
    show_field("path", 10, verbs_text(json, "path"));
    show_field("size", 10, show_bytes((double)image->bytes, bytes));
    show_field("from", 10, show_origin(image, origin));
    show_field("sha256", 10, verbs_text(json, "sha256"));
    if (!image->manifest.known) {
        show_field("holds", 10, "nothing is known: it has no manifest, or one that is damaged");
        return CLI_OK;
    }
    show_field("python", 10, show_python(&image->manifest, python));
    show_field("pypy", 10, image->manifest.is_pypy ? "yes" : "no");
    show_field("node", 10, image->manifest.node[0] ? image->manifest.node : NULL);
    show_field("warm", 10, image->manifest.warm_python ? "yes" : "no");
    show_field("memory", 10,
               image->manifest.memory_bytes > 0
                   ? show_bytes((double)image->manifest.memory_bytes, bytes)
                   : NULL);
    print_names("modules", verbs_member(json, "modules"));
    print_names("packages", verbs_member(json, "python_packages"));
    if (image->manifest.node_modules.len > 0)
        print_names("for node", verbs_member(json, "node_modules"));
    print_names("programs", verbs_member(json, "programs"));
    print_names("debian", verbs_member(json, "debian_packages"));
    return CLI_OK;
}

static int show(const struct cli *cli, const struct options *options)
{
    _cleanup_image_store_ struct image_store store = {0};
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const struct image_stored *image;
    char hex[SHA256_HEX_SIZE], hint[IMAGE_HINT_SIZE];
    struct err err = {0};

    if (image_store_read(cli, &store, &err) < 0)
        return verbs_failed(&err);
    image = image_store_find(&store, options->args[0]);
    if (!image) {
        cli_say("there is no image %s (`skillvm image list`)%s", options->args[0],
                image_recipes_hint(cli, &store, options->args[0], hint));
        return CLI_FAILED;
    }
    if (digest(image, hex, &err) < 0)
        return verbs_failed(&err);
    if (options->spdx)
        return image_write_spdx(cli, image, hex, &err) < 0 ? verbs_failed(&err) : CLI_OK;
    json = describe(image);
    cJSON_AddStringToObject(json, "sha256", hex);
    verbs_add_strings(json, "modules", &image->manifest.modules);
    verbs_add_strings(json, "standard_library", &image->manifest.standard);
    verbs_add_strings(json, "python_packages", &image->manifest.packages);
    verbs_add_strings(json, "node_modules", &image->manifest.node_modules);
    verbs_add_strings(json, "programs", &image->manifest.programs);
    add_debian(json, image);
    return options->json ? verbs_print_tree(steal_ptr(&json)) : print_one(image, json);
}

static int remove_one(const struct cli *cli, const char *name, struct err *err)
{
    _cleanup_image_store_ struct image_store store = {0};
    _cleanup_fd_ int held = -1;
    const struct image_stored *image;
    char hint[IMAGE_HINT_SIZE];
    int r = image_check_name(name, err);

    if (r < 0)
        return r;
    held = image_store_hold(cli, err);
    if (held < 0)
        return held;
    r = image_store_read(cli, &store, err);
    if (r < 0 && r != -E2BIG)
        return r;
    image = image_store_find(&store, name);
    if (!image)
        return err_set(err, ENOENT, "there is no image %s (`skillvm image list`)%s", name,
                       image_recipes_hint(cli, &store, name, hint));
    if (image->is_shipped)
        return err_set(err, EPERM, "%s is the installation's own, which has it in %s", name,
                       image->folder);
    return image_store_remove(cli, name, err);
}

static int rm(const struct cli *cli, const struct options *options)
{
    struct err err = {0};

    if (remove_one(cli, options->args[0], &err) < 0)
        return verbs_failed(&err);
    image_tell(cli, options->args[0], false);
    return CLI_OK;
}

#define HERE "images are this machine's"

const struct verb image_verbs[] = {
    {.name = "list",
     .args = "[-o json|table]",
     .summary = "list the images, of the installation and made here",
     .text = "Lists the images that a daemon here has, with their interpreters, and "
             "those that can be built. Where WARM is yes, a Python waits in the machine's "
             "snapshot; "
             "else it is started for each execution.",
     .examples = "image list\nimage list --json\n",
     .options = OPTION_FORMAT,
     .here = HERE,
     .run = list},
    {.name = "show",
     .args = "NAME [-o json|table] [--spdx]",
     .summary = "show what an image holds, and where it is from",
     .text =
         "Shows the image's modules, programs and packages, its digest, and what it was built "
         "or imported from. With --spdx it is an SPDX 2.3 document in JSON of the Debian "
         "packages that the image was made of.",
     .examples = "image show python\nimage show py312 --json | jq .python_packages\n"
                 "image show python --spdx >python.spdx.json\n",
     .options = OPTION_FORMAT | OPTION_SPDX,
     .n_args = 1,
     .here = HERE,
     .run = show},
    {.name = "import",
     .args = "PATH [--name NAME]",
     .summary = "make an image of a container that was saved",
     .text =
         "Makes an image of what `docker save`, `podman save` or `skopeo copy` wrote: a docker "
         "archive, or an OCI layout in a tar or a folder, for linux/amd64. Nothing of it is "
         "run on this machine. Without --name it is named for the file. Skills choose it by "
         "`image: NAME` in their front matter. A daemon that runs here takes it up.",
     .examples = "image import my-tools.tar\nimage import layout/\n"
                 "image import python-3.12.tar.gz --name py312\n",
     .options = OPTION_NAME,
     .n_args = 1,
     .here = HERE,
     .run = image_import},
    {.name = "build",
     .args = "RECIPE",
     .summary = "build an image of Debian's packages by a recipe",
     .text =
         "Builds an image by RECIPE: a file, or the name of one in the folder recipes "
         "of the folder of images or of the installation. Packages are resolved and fetched "
         "by apt from this machine's sources, without root. A daemon that runs here takes the "
         "image up.",
     .examples = "image build data\nimage build geo.yaml\n",
     .n_args = 1,
     .here = HERE,
     .run = image_build},
    {.name = "rm",
     .args = "NAME",
     .summary = "remove an image that was made here",
     .text =
         "Removes an image that was imported or built here. Skills that name it then run in "
         "`python`, with a warning. Executions that wait or run keep it.",
     .examples = "image rm py312\n",
     .n_args = 1,
     .here = HERE,
     .run = rm},
    {.name = NULL},
};
