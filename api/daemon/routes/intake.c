/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/intake.h"

#include "api/daemon/routes/chooser.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/store/store.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/code.h"
#include "api/skill/entry.h"
#include "api/skill/needs.h"
#include "api/skill/requirements.h"
#include "api/wheels/packages.h"
#include "base/fd.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_names(struct skill *skill, struct err *err)
{
    if (!skill->name)
        return err_set(err, EINVAL, "SKILL.md gives the skill no name");
    if (!request_name_valid(skill->name, LIMIT_NAME_BYTES))
        return err_set(err, EINVAL, "\"%.64s\" cannot be the name of a skill", skill->name);
    if (!skill->version)
        skill->version = strdup(SKILL_VERSION_NONE);
    if (!skill->version)
        return err_no_memory(err);
    if (!request_name_valid(skill->version, LIMIT_VERSION_BYTES) ||
        strcmp(skill->version, "latest") == 0 ||
        strncmp(skill->version, REGISTRY_BY_DIGEST, strlen(REGISTRY_BY_DIGEST)) == 0)
        return err_set(err, EINVAL, "\"%.64s\" cannot be the version of a skill",
                       skill->version);
    return 0;
}

/* An archive that is checked. What comes of it is the caller's. */
struct taking {
    struct daemon *d;
    const struct images *images; /* of now */
    struct http_request *request;
    int fd, tar_fd;
    const char *image;   /* that the request names, or NULL */
    uint64_t used, held; /* bytes that were written */
    struct skill_archive *archive;
    struct skill *skill;
    struct image_choice *choice;
    struct intake_packages *packages;
};

static int grow(void *ctx, uint64_t bytes, struct err *err)
{
    struct taking *t = ctx;

    t->used += bytes;
    /* Few are not counted, as of a body. */
    if (t->used <= SPOOL_MEMORY_MAX)
        return 0;
    if (!http_request_hold(t->request, t->used - t->held))
        return err_set(err, EDQUOT, "there is no room for what it holds");
    t->held = t->used;
    return 0;
}

/* No more than so many of them are there any longer. */
static void shrink(struct taking *t, uint64_t used)
{
    t->used = used;
    if (t->held <= used)
        return;
    t->held = used;
    http_request_shrink(t->request, used);
}

static int temporary(void *ctx)
{
    return store_temporary(ctx);
}

/* Chooses the packages, and writes what they hold to a file of its own. */
static int choose_packages(struct taking *t, struct skill_strings *warnings, struct err *err)
{
    struct store *objects = t->d->store;
    _cleanup_fd_ int unpacked = store_temporary(objects), layer = store_temporary(objects);
    const struct archive_spool spool = {unpacked, grow, t};
    const struct wheels wheels = {.tar_fd = t->tar_fd,
                                  .archive = t->archive,
                                  .skill = t->skill,
                                  .image = &t->images->known.list[t->choice->place].manifest,
                                  .wheelhouse = t->d->wheelhouse,
                                  .limits = &t->d->packages_limits,
                                  .spool = &spool,
                                  .temporary = temporary,
                                  .ctx = objects,
                                  .layer_fd = layer};
    int r = unpacked < 0 || layer < 0
                ? err_set(err, EIO, "cannot create a temporary file")
                : wheels_prepare(&wheels, &t->packages->layer, warnings, err);

    if (r < 0)
        return r;
    if (t->packages->layer.digest[0])
        t->packages->fd = fd_steal(&layer);
    return 0;
}

void intake_packages_finish(struct intake_packages *packages)
{
    fd_close(&packages->fd);
    wheels_layer_finish(&packages->layer);
}

static int choose_image(struct taking *t, const struct chooser_packages *packages,
                        struct needs *needs, struct err *err)
{
    return chooser_look(t->d, t->images, t->request->caller.tenant, t->skill, t->archive,
                        packages, t->image, needs, t->choice, err);
}

/*
 * What the packages hold no image needs to have that they go with, so that a smaller one may
 * do: they stay what they are.
 */
static int choose_again(struct taking *t, struct needs *needs, struct err *err)
{
    const struct wheels_layer *layer = &t->packages->layer;

    return choose_image(t,
                        &(struct chooser_packages){layer->digest, t->packages->fd,
                                                   layer->packages, layer->python_minor},
                        needs, err);
}

/* Whether it would get no packages where it is, and what is there is not all. */
static bool wants_wheelhouse(const struct taking *t, const struct needs *needs)
{
    return t->d->wheelhouse[0] && needs->missing > 0 &&
           image_manifest_obstacle(&t->images->known.list[t->choice->place].manifest);
}

/* An image that takes packages is better if the wheelhouse meets what is required. */
static int try_wheelhouse(struct taking *t, struct needs *needs, struct err *err)
{
    const struct chooser_packages some = {.digest = "", .fd = -1, .list = "[]"};
    _cleanup_skill_strings_ struct skill_strings warnings = {0};
    int r = choose_image(t, &some, needs, err);

    if (r < 0)
        return r;
    r = choose_packages(t, &warnings, err);
    if (r < 0)
        return r;
    if (t->packages->layer.packages)
        return skill_strings_append(&t->skill->warnings, &warnings) < 0 ? err_no_memory(err)
                                                                        : 0;
    needs->has_packages = false;
    needs->go = 0;
    return choose_image(t, &CHOOSER_NO_PACKAGES, needs, err);
}

/* Image and packages, and what both of them do not have. */
static int look_at(struct taking *t, struct err *err)
{
    _cleanup_needs_ struct needs needs = {0};
    int r = grow(t, needs_bytes(t->archive), err);

    if (r < 0)
        return r;
    r = needs_read(t->tar_fd, t->archive, t->skill, &needs, err);
    if (r < 0)
        return r;
    r = choose_image(t, &CHOOSER_NO_PACKAGES, &needs, err);
    if (r < 0)
        return r;
    r = choose_packages(t, &t->skill->warnings, err);
    if (r == 0 && wants_wheelhouse(t, &needs))
        r = try_wheelhouse(t, &needs, err);
    if (r == 0 && t->packages->layer.packages)
        r = choose_again(t, &needs, err);
    if (r < 0)
        return r;
    return needs_warn(&needs, &t->skill->warnings) < 0 ? err_no_memory(err) : 0;
}

static int load_archive(struct taking *t, struct err *err)
{
    struct archive_spool spool = {store_temporary(t->d->store), grow, t};
    int r;

    if (spool.fd < 0)
        return err_set_errno(err, -spool.fd, "cannot create a temporary file");
    r = skill_archive_load(t->fd, &t->d->archive_limits, &spool, t->tar_fd, t->archive,
                           t->skill, err);
    fd_close(&spool.fd);
    if (r == 0)
        shrink(t, t->archive->tar_bytes);
    return r;
}

static int load_and_look(struct taking *t, struct err *err)
{
    int r = load_archive(t, err);

    return r < 0 ? r : look_at(t, err);
}

/* Loads when it is its turn. */
static int load(struct taking *t, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, t->d, TURN_ARCHIVE, t->request->caller.tenant, err);

    if (r < 0)
        return r;
    r = load_and_look(t, err);
    http_request_shrink(t->request,
                        r == 0 ? t->archive->tar_bytes + t->packages->layer.bytes : 0);
    return r < 0 ? r : check_names(t->skill, err);
}

bool intake_archive(struct daemon *d, struct http_request *request, struct spool *upload,
                    int tar_fd, const char *image, struct skill_archive *ret_archive,
                    struct skill *ret_skill, struct image_choice *ret_choice,
                    struct intake_packages *ret_packages, struct http_reply *reply)
{
    _cleanup_images_ struct images *images = image_tables_now(d->images);
    struct taking taking = {.d = d,
                            .images = images,
                            .request = request,
                            .fd = spool_to_fd(upload),
                            .tar_fd = tar_fd,
                            .image = image,
                            .archive = ret_archive,
                            .skill = ret_skill,
                            .choice = ret_choice,
                            .packages = ret_packages};
    struct err err = {0};
    int r;

    if (taking.fd < 0)
        return http_reply_error(reply, 500, "internal_error", "cannot keep the archive: %s",
                                strerror(-taking.fd));
    r = load(&taking, &err);
    /* Who has no room for it has said so. */
    if (r == 0 || reply->status != 0)
        return r == 0;
    if (r == -ENOENT)
        return http_reply_error(reply, 401, "unauthorized", "%s", err.message);
    if (r != -EINVAL)
        return failure_reply(reply, r, &err);
    return http_reply_error(reply, 400, "invalid_skill", "%s",
                            err.code ? err.message : strerror(EINVAL));
}

/* What a script asks for in a block of PEP 723: one without it finds out when it runs. */
static int look_at_code(struct daemon *d, const char *tenant, const struct request *q,
                        int tar_fd, const struct skill_archive *archive, struct skill *skill,
                        struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_needs_ struct needs needs = {0};
    _cleanup_images_ struct images *images = NULL;
    struct image_choice choice;
    int r;

    if (!strstr(q->code, REQUIREMENTS_BLOCK_BEGIN))
        return 0;
    r = turn_take(&turn, d, TURN_ARCHIVE, tenant, err);
    if (r < 0)
        return r;
    r = needs_read(tar_fd, archive, skill, &needs, err);
    if (r < 0)
        return r;
    /* Its request does, and its result tells which of them were refused. */
    needs.says_hosts = true;
    images = image_tables_now(d->images);
    r = chooser_look(d, images, tenant, skill, archive, &CHOOSER_NO_PACKAGES, q->image, &needs,
                     &choice, err);
    if (r < 0)
        return r;
    return needs_warn(&needs, &skill->warnings) < 0 ? err_no_memory(err) : 0;
}

bool intake_code(struct daemon *d, struct http_request *request, const struct request *q,
                 int tar_fd, struct skill_archive *ret_archive, struct skill *ret_skill,
                 struct http_reply *reply)
{
    size_t len = strlen(q->code);
    struct err err = {0};
    int r;

    /* As of an archive, few are not counted. */
    if (len > SPOOL_MEMORY_MAX && !http_request_hold(request, len + CODE_TAR_EXTRA))
        return false;
    r = code_make_skill(q->code_lang, q->code, len, tar_fd, ret_archive, ret_skill, &err);
    /* It was checked before: whatever is wrong now is ours. */
    if (r < 0)
        return failure_reply(reply, r == -ENOMEM ? r : -EIO, &err);
    r = look_at_code(d, request->caller.tenant, q, tar_fd, ret_archive, ret_skill, &err);
    return failure_or_true(reply, r, &err);
}

/* How much of the body of SKILL.md fits an environment variable. */
static size_t instructions_len(const struct skill *skill)
{
    const char *text = skill->instructions;

    return text ? utf8_fit(text, skill->instructions_len, LIMIT_INSTRUCTIONS) : 0;
}

static int write_run(const struct skill *skill, const struct skill_entry *entry,
                     const struct request *request, struct execution *e)
{
    const struct job_orders orders = {.lang = entry->lang,
                                      .mode = entry->mode,
                                      .entry = entry->entry,
                                      .args = (const char *const *)request->args.items,
                                      .n_args = request->args.len,
                                      .env = (const char *const *)request->env.items,
                                      .n_env = request->env.len,
                                      .instructions =
                                          skill->instructions ? skill->instructions : "",
                                      .instructions_len = instructions_len(skill),
                                      .skill_name = e->skill_name[0] ? e->skill_name : NULL};

    return job_encode(&e->job, &orders);
}

/* The lower of the daemon's ceiling and the tenant's, where that has one. */
static uint64_t ceiling(uint64_t of_daemon, uint64_t of_tenant)
{
    return of_tenant > 0 && of_tenant < of_daemon ? of_tenant : of_daemon;
}

/* The request's word, else the skill's, else its image's. */
static uint64_t choose_memory(const struct image_manifest *image, const struct skill *skill,
                              const struct request *request)
{
    if (request->memory_bytes > 0)
        return request->memory_bytes;
    if (skill->memory_bytes > 0)
        return skill->memory_bytes;
    return image->memory_bytes > 0 ? image->memory_bytes : DEFAULT_MEMORY_BYTES;
}

static int choose_limits(const struct image_manifest *image, const struct skill *skill,
                         const struct request *request, struct execution *e)
{
    struct job *job = &e->job;
    uint64_t timeout = request->timeout_ms ? request->timeout_ms : skill->timeout_ms;
    uint64_t max_timeout = ceiling(LIMIT_TIMEOUT_MS, e->limits.max_timeout_ms);
    uint64_t max_memory = ceiling(LIMIT_MEMORY_MAX, e->limits.max_memory_bytes);
    int r = 0;

    job->timeout_ms = timeout ? timeout : DEFAULT_TIMEOUT_MS;
    job->memory_bytes = choose_memory(image, skill, request);
    job->pids = request->pids && request->pids < LIMIT_PIDS ? request->pids : LIMIT_PIDS;
    if (job->timeout_ms > max_timeout) {
        job->timeout_ms = max_timeout;
        r = skill_strings_add(&e->warnings, "the timeout was cut to %g s",
                              (double)max_timeout / 1000);
    }
    if (r == 0 && job->memory_bytes > max_memory) {
        job->memory_bytes = max_memory;
        r = skill_strings_add(&e->warnings, "the memory limit was cut to %llu MiB",
                              (unsigned long long)(max_memory / LIMIT_MIB));
    }
    if (r == 0 && job->memory_bytes < LIMIT_MEMORY_MIN) {
        job->memory_bytes = LIMIT_MEMORY_MIN;
        r = skill_strings_add(&e->warnings, "the memory limit was raised to %llu MiB",
                              LIMIT_MEMORY_MIN / LIMIT_MIB);
    }
    return r;
}

/*
 * Which hosts it may reach: what it declares, as far as its tenant and the request permit. Code
 * declares nothing but what its request asks for.
 */
static int choose_network(const struct daemon *d, const struct skill *skill,
                          const struct request *request, struct execution *e)
{
    struct job_network *network = &e->job.network;
    const char *policy = e->limits.network[0] ? e->limits.network : d->network_policy;
    const char *declared = request->code ? request->network : skill->network;
    bool is_list = strcmp(policy, TENANT_NETWORK_DECLARED) != 0;

    if (!declared || !*declared || (request->network && !*request->network))
        return 0;
    if (strcmp(policy, TENANT_NETWORK_OFF) == 0)
        return skill_strings_add(
            &e->warnings,
            "the network is off: it may reach none of %.200s. The operator "
            "permits it by the tenant's limit network, or the setting "
            "network.policy",
            declared);
    network->declared = strdup(declared);
    network->policy = is_list ? strdup(policy) : NULL;
    network->asked = request->network && !request->code ? strdup(request->network) : NULL;
    return network->declared && (network->policy || !is_list) &&
                   (network->asked || !request->network || request->code)
               ? 0
               : -ENOMEM;
}

static int write_orders(const struct image_manifest *image, const struct skill *skill,
                        const struct skill_entry *entry, const struct request *request,
                        struct execution *e)
{
    if (choose_limits(image, skill, request, e) < 0 ||
        skill_strings_append(&e->warnings, &request->warnings) < 0)
        return -ENOMEM;
    return write_run(skill, entry, request, e);
}

/* A skill that was written for another runner may name an image of that one's. */
static int warn_of_image(const struct skill *skill, const struct request *request,
                         struct execution *e)
{
    if (!skill->image || request->image || images_find(e->images, skill->image) >= 0)
        return 0;
    return skill_strings_add(&e->warnings, "there is no image %.64s here: it ran in %s",
                             skill->image, e->image.name);
}

int intake_entry(const struct skill *skill, const struct skill_archive *archive,
                 const struct request *request, struct skill_entry *ret, struct err *err)
{
    struct skill asked = *skill; /* borrows all of it */

    if (request->entry_point)
        asked.entry_point = request->entry_point;
    return skill_entry_resolve(&asked, archive, request->script, request->module, ret, err);
}

/* Python and bash our images all have; for Node there is one that may not be built. */
static int check_node(const struct image_listed *image, const char *lang, struct err *err)
{
    if (strcmp(lang, "node") != 0 || !image->manifest.known ||
        image_manifest_runs(&image->manifest, lang))
        return 0;
    return err_set(err, EINVAL,
                   "the image \"%s\" does not run node: use one that does (\"image: node\"), "
                   "which `skillvm image build node` makes on its machine",
                   image->name);
}

/* What was chosen for another image goes with this one, or a script in Python does not run. */
static int check_packages(const struct image_listed *image, const char *lang,
                          struct execution *e, struct err *err)
{
    struct err why = {0};
    int r = e->packages ? packages_check(e->packages, (unsigned)e->packages_python,
                                         &image->manifest, &e->warnings, &why)
                        : 0;

    if (r == -EINVAL && strcmp(lang, "python") != 0)
        return skill_warn(&e->warnings, "%s", why.message) < 0 ? err_no_memory(err) : 0;
    return r < 0 ? err_set(err, -r, "%s", why.message) : 0;
}

int intake_plan(struct daemon *d, const struct skill *skill,
                const struct skill_archive *archive, const struct request *request,
                struct skill_entry *entry, struct execution *e, struct err *err)
{
    const struct image_listed *image = &e->images->known.list[e->image.place];
    int r = check_node(image, entry->lang, err);

    if (r < 0)
        return r;
    r = check_packages(image, entry->lang, e, err);
    if (r < 0)
        return r;
    r = profiles_look(d->profiles, e->images, e->image.place, e->skill_digest, e->job.skill.fd,
                      archive, entry, e->profile, err);
    if (r < 0)
        return r;
    if (choose_network(d, skill, request, e) < 0)
        return err_no_memory(err);
    r = write_orders(&image->manifest, skill, entry, request, e);
    if (r < 0)
        return err_set_errno(err, -r, "cannot prepare the execution");
    return warn_of_image(skill, request, e) < 0 ? err_no_memory(err) : 0;
}
