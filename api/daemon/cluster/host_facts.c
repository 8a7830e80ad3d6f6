/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/host_facts.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPUINFO_MAX 4096u /* of the first processor, with room */

/* The word behind "key<tabs>: ", or "0". What a word may not have becomes '.'. */
static void take_field(const char *text, const char *key, char *ret, size_t size)
{
    const char *at = strstr(text, key);
    size_t len;

    (void)snprintf(ret, size, "0");
    at = at ? strstr(at, ": ") : NULL;
    if (!at)
        return;
    at += 2;
    len = strcspn(at, "\n");
    (void)snprintf(ret, size, "%.*s", (int)len, at);
    for (char *c = ret; *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '.';
    }
}

void host_facts_read(struct node_entry *entry)
{
    _cleanup_fd_ int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    char text[CPUINFO_MAX], vendor[24], family[8], model[8], stepping[8];
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (n > 0) {
        text[n] = '\0';
        take_field(text, "vendor_id\t", vendor, sizeof(vendor));
        take_field(text, "cpu family\t", family, sizeof(family));
        take_field(text, "model\t", model, sizeof(model));
        take_field(text, "stepping\t", stepping, sizeof(stepping));
        (void)snprintf(entry->cpu, sizeof(entry->cpu), "%s-%s-%s-%s", vendor, family, model,
                       stepping);
    }
    if (pages > 0 && page > 0)
        entry->memory_bytes = (uint64_t)pages * (uint64_t)page;
    entry->kvm = access("/dev/kvm", R_OK | W_OK) == 0;
}
