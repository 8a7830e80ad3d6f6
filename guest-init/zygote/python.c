/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's interpreter: Debian's objects of Python, linked as a program without a fixed
 * place. Debian's own /usr/bin/python3.11 has one, so that its text and data lay at the same
 * addresses in every snapshot. It must never do anything else than that program.
 */
#include <Python.h>

int main(int argc, char **argv)
{
    return Py_BytesMain(argc, argv);
}
