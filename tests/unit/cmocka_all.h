/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmocka and the headers it needs before itself. clang-format must not sort them: cmocka.h uses
 * what the others define.
 */
#ifndef SKILLVM_TESTS_UNIT_CMOCKA_ALL_H
#define SKILLVM_TESTS_UNIT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#endif
