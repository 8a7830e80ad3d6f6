/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"

/* Since Linux 6.11; older headers do not have it. */
#ifndef KVM_PRE_FAULT_MEMORY
struct kvm_pre_fault_memory {
    uint64_t gpa;
    uint64_t size;
    uint64_t flags;
    uint64_t padding[5];
};
#define KVM_PRE_FAULT_MEMORY _IOWR(KVMIO, 0xd5, struct kvm_pre_fault_memory)
#endif

struct kvm kvm_init(void)
{
    return (struct kvm){.dev_fd = -1, .vm_fd = -1, .vcpu_fd = -1};
}

int kvm_ioctl(int fd, unsigned long request, void *arg, const char *name, struct err *err)
{
    int r = ioctl(fd, request, arg);

    return r >= 0 ? r : err_set_errno(err, errno, "%s", name);
}

int kvm_open(struct kvm *kvm, int dev_fd, struct err *err)
{
    int r;

    kvm->dev_fd = dev_fd >= 0 ? dev_fd : open(KVM_DEVICE_PATH, O_RDWR | O_CLOEXEC);
    if (kvm->dev_fd < 0)
        return err_set_errno(err, errno, "open %s", KVM_DEVICE_PATH);
    r = kvm_ioctl(kvm->dev_fd, KVM_GET_API_VERSION, NULL, "KVM_GET_API_VERSION", err);
    if (r < 0)
        return r;
    if (r != KVM_API_VERSION)
        return err_set(err, ENOTSUP, "KVM API version %d, this program needs %d", r,
                       KVM_API_VERSION);
    return 0;
}

int kvm_create_vm(struct kvm *kvm, struct err *err)
{
    int r = kvm_ioctl(kvm->dev_fd, KVM_CREATE_VM, NULL, "KVM_CREATE_VM", err);

    if (r < 0)
        return r;
    kvm->vm_fd = r;
    return 0;
}

static int set_memory(const struct kvm *kvm, void *host, uint64_t bytes, bool log_dirty,
                      struct err *err)
{
    struct kvm_userspace_memory_region region = {
        .flags = log_dirty ? KVM_MEM_LOG_DIRTY_PAGES : 0,
        .memory_size = bytes,
        .userspace_addr = (uintptr_t)host,
    };

    return kvm_ioctl(kvm->vm_fd, KVM_SET_USER_MEMORY_REGION, &region,
                     "KVM_SET_USER_MEMORY_REGION", err);
}

static int create_vcpu(struct kvm *kvm, struct err *err)
{
    int r = kvm_ioctl(kvm->dev_fd, KVM_GET_VCPU_MMAP_SIZE, NULL, "KVM_GET_VCPU_MMAP_SIZE", err);
    void *run;

    if (r < 0)
        return r;
    if ((size_t)r < sizeof(struct kvm_run))
        return err_set(err, ENOTSUP, "KVM_GET_VCPU_MMAP_SIZE: %d bytes are too few", r);
    kvm->run_bytes = (size_t)r;
    r = kvm_ioctl(kvm->vm_fd, KVM_CREATE_VCPU, NULL, "KVM_CREATE_VCPU", err);
    if (r < 0)
        return r;
    kvm->vcpu_fd = r;
    run = mmap(NULL, kvm->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kvm->vcpu_fd, 0);
    if (run == MAP_FAILED)
        return err_set_errno(err, errno, "mapping the vCPU");
    kvm->run = run;
    return 0;
}

/* The order is that of docs/snapshot-format.md. */
int kvm_make(struct kvm *kvm, int dev_fd, void *host, uint64_t bytes, bool log_dirty,
             struct err *err)
{
    int r = kvm_open(kvm, dev_fd, err);

    if (r < 0)
        return r;
    r = kvm_create_vm(kvm, err);
    if (r < 0)
        return r;
    r = arch_vm_setup(kvm, err);
    if (r < 0)
        return r;
    r = set_memory(kvm, host, bytes, log_dirty, err);
    return r < 0 ? r : create_vcpu(kvm, err);
}

int kvm_pre_fault(const struct kvm *kvm, uint64_t gpa, uint64_t len)
{
    struct kvm_pre_fault_memory range = {.gpa = gpa, .size = len};

    /* The kernel moves the range on, and may come back early. */
    while (range.size > 0) {
        if (ioctl(kvm->vcpu_fd, KVM_PRE_FAULT_MEMORY, &range) < 0)
            return -errno;
    }
    return 0;
}

void kvm_finish(struct kvm *kvm)
{
    if (kvm->run)
        (void)munmap(kvm->run, kvm->run_bytes);
    kvm->run = NULL;
    fd_close(&kvm->vcpu_fd);
    fd_close(&kvm->vm_fd);
    fd_close(&kvm->dev_fd);
}
