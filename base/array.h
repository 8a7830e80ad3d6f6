/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by one entry at a time, and whose owner keeps nothing but how many are in
 * it. */
#ifndef SKILLVM_BASE_ARRAY_H
#define SKILLVM_BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Room for one more of so many bytes behind the n that are in an array which only this made
 * grow, from NULL on; fewer may be in it since. Each time there is none it gets as much again:
 * one more each time could be a copy of all of them each time. NULL without memory: the array
 * is as it was.
 */
static inline void *array_room(void *items, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return items;
    return reallocarray(items, n > 0 ? 2 * n : 1, size);
}

#endif
