/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/choices.h"

#include <stdio.h>

struct memo *choices_create(void)
{
    return memo_create(sizeof(struct image_choice));
}

image_set_t choices_allowed(const struct image_list *images, const struct tenant_limits *limits)
{
    image_set_t allowed = 0;

    if (!limits->images[0])
        return IMAGE_SET_ALL;
    for (unsigned i = 0; i < images->n; i++)
        if (tenant_images_have(limits->images, images->list[i].name))
            allowed |= (image_set_t)1 << i;
    return allowed;
}

static void make_key(const struct images *images, const char *digest, const char *lang,
                     image_set_t allowed, char ret_key[MEMO_KEY_SIZE])
{
    (void)snprintf(ret_key, MEMO_KEY_SIZE, "%s %llx %x %s", digest,
                   (unsigned long long)images->number, allowed, lang ? lang : "");
}

int choices_recall(struct memo *choices, const struct images *images, const char *digest,
                   const char *lang, image_set_t allowed, struct image_choice *ret)
{
    char key[MEMO_KEY_SIZE];
    int r = image_choose_clear(&images->known, allowed, ret);

    if (r != 0)
        return r;
    make_key(images, digest, lang, allowed, key);
    return memo_recall(choices, key, ret);
}

void choices_make(struct memo *choices, const struct images *images, const char *digest,
                  const char *lang, image_set_t allowed, struct needs *needs,
                  struct image_choice *ret)
{
    char key[MEMO_KEY_SIZE];

    image_choose(needs, &images->known, allowed, lang, ret);
    make_key(images, digest, lang, allowed, key);
    memo_keep(choices, key, ret);
}
