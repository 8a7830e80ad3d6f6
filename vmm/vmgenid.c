/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/vmgenid.h"

#include <errno.h>
#include <sys/random.h>

#include "vmm/layout.h"

int vmgenid_renew(const struct memory *memory, struct err *err)
{
    uint8_t id[VMGENID_SIZE];

    if (getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id))
        return err_set_errno(err, errno, "getrandom");
    if (memory_write(memory, LAYOUT_VMGENID_GPA(memory->size), id, sizeof(id)) < 0)
        return err_set(err, EFAULT, "the generation ID lies outside guest memory");
    return 0;
}
