/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in pages. A page's cursor is the key of its last entry, so that entries which come and
 * go between two pages move nothing.
 */
#ifndef SKILLVM_API_MCP_PAGE_H
#define SKILLVM_API_MCP_PAGE_H

#include "api/mcp/call.h"

struct mcp_page {
    const char *name; /* of the list in the result */
    const char *path; /* where the daemon has it: an array, or an object with what in it */
    const char *what;
    /* An item's key, owned by the caller; NULL when it has none, and then it is left out. */
    char *(*key)(struct json_slice item);
    void (*write)(struct json_writer *w, struct json_slice item);
    void (*begin)(struct json_writer *w); /* entries before the daemon's, or NULL */
};

/*
 * Writes a page of the daemon's list as the answer's result: the one after the parameters'
 * "cursor", or the first one. 0, or -1 with an error in the answer.
 */
int mcp_page_answer(const struct mcp_page *page, struct mcp_call *call,
                    struct mcp_answer *answer);

#endif
