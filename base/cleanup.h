/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup attributes for what the C library owns: a variable with one is released at the end of
 * its block, on every way out. NULL is none. What lives on is taken out of it by a steal.
 */
#ifndef SKILLVM_BASE_CLEANUP_H
#define SKILLVM_BASE_CLEANUP_H

#include <stdlib.h>

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}
#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))

/*
 * clang's analyzer does not see these attributes and takes what they free for leaked: here it
 * does not know where the memory came from.
 */
#ifdef __clang_analyzer__
#include <string.h>
void *cleanup_unseen(void *memory);
#define malloc(size)    cleanup_unseen((malloc)(size))
#define calloc(n, size) cleanup_unseen((calloc)(n, size))
#define strdup(text)    ((char *)cleanup_unseen((strdup)(text)))
#endif

/*
 * For what others own things with, in one .c: CLEANUP_WITH(cJSON *, cJSON_Delete) once, then
 * _cleanup_(cJSON_Delete) for each variable. The function takes NULL.
 */
#define CLEANUP_WITH(type, release)                                                            \
    static inline void cleanup_##release(type *owned)                                          \
    {                                                                                          \
        release(*owned);                                                                       \
    }
#define _cleanup_(release) __attribute__((cleanup(cleanup_##release)))

/* Returns *pointer and leaves NULL behind: the caller now owns it. */
#define steal_ptr(pointer)                                                                     \
    ({                                                                                         \
        __typeof__(*(pointer)) stolen_ = *(pointer);                                           \
        *(pointer) = NULL;                                                                     \
        stolen_;                                                                               \
    })

#endif
