/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program made and something from before the wait still holds when the interpreter
 * ends, such as an attribute that it set in a preloaded module: the preloaded are not cleared,
 * so this would live on without being finalised.
 */
#ifndef SKILLVM_GUEST_ZYGOTE_LEFT_H
#define SKILLVM_GUEST_ZYGOTE_LEFT_H

struct _is;     /* PyInterpreterState */
struct _object; /* PyObject */

/*
 * Calls the finalizers of all that is left but what is in the list `except`, and but what sys,
 * builtins and the interpreter lead to: that has its turn in a call after those were cleared.
 * Leaves no exception.
 */
void left_finalise(struct _is *interp, struct _object *except);

#endif
