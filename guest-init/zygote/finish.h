/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the interpreter. Py_FinalizeEx frees every object there is, page by page; this
 * does in its order what a program can observe and leaves the rest to the end of the process.
 * The functions that need Python's types are declared where they are used.
 */
#ifndef SKILLVM_GUEST_ZYGOTE_FINISH_H
#define SKILLVM_GUEST_ZYGOTE_FINISH_H

/*
 * Notes what is there now, which the end will spare, and takes the place of Py_FinalizeEx.
 * Call it last before the wait, and again if more is to be spared, holding the interpreter's
 * lock. 0, or -1 with an exception.
 */
int finish_prepare(void);

/*
 * From here on this process ends by way of guest-init/zygote/end.h, if the socket of the zygote
 * gives it the page, and its children as ever. 0 or -errno.
 */
int leave_prepare(int control);

#endif
