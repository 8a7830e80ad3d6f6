/* SPDX-License-Identifier: Apache-2.0 */
#include "base/help_text.h"

#include <stdio.h>
#include <string.h>

#define WIDTH  92u
#define INDENT 30u /* of what a pair's left side does */

void help_text_fill(const char *text, size_t len, size_t column, const char *margin)
{
    size_t indent = column;
    const char *end = text + len;

    while (text < end) {
        size_t n = strcspn(text, " \n");

        n = n < (size_t)(end - text) ? n : (size_t)(end - text);
        if (column > indent && column + 1 + n > WIDTH)
            column = (size_t)printf("\n%*s", (int)indent, margin) - 1;
        else if (column > indent)
            column += (size_t)printf(" ");
        column += (size_t)printf("%.*s", (int)n, text);
        text += n < (size_t)(end - text) ? n + 1 : n;
    }
    putchar('\n');
}

void help_text_pair(const char *left, const char *help)
{
    int n = printf("  %s", left);

    if (n + 2 > (int)INDENT)
        n = printf("\n") - 1;
    printf("%*s", (int)INDENT - n, "");
    help_text_fill(help, strlen(help), INDENT, "");
}
