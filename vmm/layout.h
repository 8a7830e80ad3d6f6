/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are in guest physical address space and on which interrupt line. Part of the
 * snapshot format: a change here is a new version of the machine section in snapshot.c.
 */
#ifndef SKILLVM_VMM_LAYOUT_H
#define SKILLVM_VMM_LAYOUT_H

/* RAM is one block from address 0, below the devices. */
#define LAYOUT_RAM_BASE      0x0ull
#define LAYOUT_RAM_MIN_BYTES (32ull << 20)
#define LAYOUT_RAM_MAX_BYTES (3ull << 30)
#define LAYOUT_PAGE_SIZE     4096u

/* Device windows: one page each, those of machine_devices first, in its order. */
#define LAYOUT_DEVICES_MAX    16u
#define LAYOUT_DEVICE_SIZE    0x1000u
#define LAYOUT_DEVICE_BASE(i) (0xd0000000ull + (i)*LAYOUT_DEVICE_SIZE)
#define LAYOUT_SERIAL_BASE    LAYOUT_DEVICE_BASE(LAYOUT_DEVICES_MAX)

/* Interrupt lines of the interrupt controller, all edge triggered. */
#define LAYOUT_VMGENID_GSI   3u
#define LAYOUT_SERIAL_GSI    4u
#define LAYOUT_DEVICE_GSI(i) (5u + (i))

/* The generation ID has the last page of RAM for itself, kept from the kernel's allocator. */
#define LAYOUT_VMGENID_GPA(ram_bytes) ((ram_bytes)-LAYOUT_PAGE_SIZE)

#endif
