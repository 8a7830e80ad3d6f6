/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pages/pages.h"

#include <stdio.h>
#include <string.h>

void pages_roff(const char *text, size_t len)
{
    static const char dots[] = "…";

    if (len > 0 && (*text == '.' || *text == '\''))
        printf("\\&");
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\') {
            printf("\\e");
        } else if (text[i] == '`') {
            printf("\\(ga");
        } else if (strncmp(text + i, ". ", 2) == 0) {
            printf(".\n");
            i++;
        } else if (strncmp(text + i, dots, strlen(dots)) == 0) {
            printf("...");
            i += strlen(dots) - 1;
        } else {
            putchar(text[i]);
        }
    }
    putchar('\n');
}
