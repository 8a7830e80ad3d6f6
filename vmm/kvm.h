/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of one KVM machine with one vCPU, and the few calls that are the same on
 * every architecture. It must never hold devices or policy.
 */
#ifndef SKILLVM_VMM_KVM_H
#define SKILLVM_VMM_KVM_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KVM_DEVICE_PATH "/dev/kvm"

struct kvm {
    int dev_fd;
    int vm_fd;
    int vcpu_fd;
    struct kvm_run *run; /* shared with the kernel; written by it during KVM_RUN */
    size_t run_bytes;
};

/* Nothing open. */
struct kvm kvm_init(void);
/* Takes dev_fd over as /dev/kvm, or opens it where that is -1, and checks its API version. 0 or
   -errno; kvm_finish in both cases. */
int kvm_open(struct kvm *kvm, int dev_fd, struct err *err);
/* Creates a machine without memory on an open device. */
int kvm_create_vm(struct kvm *kvm, struct err *err);
/*
 * Opens the device, creates a machine with what the architecture needs, makes host its RAM at
 * address 0 (slot 0), creates vCPU 0 and maps its run area. bytes is a multiple of the page
 * size. log_dirty makes KVM note which pages the guest writes. 0 or -errno; kvm_finish in both
 * cases.
 */
int kvm_make(struct kvm *kvm, int dev_fd, void *host, uint64_t bytes, bool log_dirty,
             struct err *err);
/*
 * Puts memory into the vCPU's nested page table before it runs, as a read of each page would,
 * without leaving the guest for it. The vCPU's registers are loaded. 0, or -errno before Linux
 * 6.11 and where KVM cannot.
 */
int kvm_pre_fault(const struct kvm *kvm, uint64_t gpa, uint64_t len);
/* ioctl on fd that turns a failure into -errno and "name: strerror" in err. */
int kvm_ioctl(int fd, unsigned long request, void *arg, const char *name, struct err *err);
/* Closes everything that is open. */
void kvm_finish(struct kvm *kvm);
#define _cleanup_kvm_ __attribute__((cleanup(kvm_finish)))

#endif
