#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Takes away one thing after the other that a machine's process gives up or its jail keeps from it,
# and one check after the other of its devices and of the daemon's relay, and shows that a test fails
# for it; the same of what a skill's process gives up in its guest. Works on a copy of the tree.
#   mutate.sh [WHERE…]    unit, platform, filter, cpuid, control, vm, given, jail, devices, digests, frames, archives, queue:
#                         these without a word; guest, skill, host, limits, damage, categories, floods, trail, relay, owners,
#                         resets, caller and taken: what only a real machine shows, in the software host
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
[ $# -gt 0 ] || set -- unit platform filter cpuid control vm given jail devices digests frames archives queue
copy=$(mktemp -d)
chmod 755 "$copy" # its programs are run as other users, too
trap 'rm -rf "$copy"' EXIT
export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
survived=0

# where it is tested; what is taken away; the file; how, as sed does it
mutations=(
    'unit|dying with its parent|vmm/harden.c|s/prctl(PR_SET_PDEATHSIG, SIGKILL) < 0/0/'
    'unit|being the first to go|vmm/harden.c|s/write(fd, "1000", 4) < 0/fd > 1000/'
    'unit|not being dumpable|vmm/harden.c|s/prctl(PR_SET_DUMPABLE, 0) < 0/0/'
    'unit|closing what it was not told of|vmm/harden.c|s/close_range((unsigned)last_fd + 1, ~0u, 0) < 0/last_fd < -1/'
    'unit|no core file|vmm/harden.c|s/return set_limit(RLIMIT_CORE.*/return 0;/'
    'unit|no new privileges|vmm/harden.c|s/prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0/0/'
    'unit|no capabilities|vmm/harden.c|s/syscall(SYS_capset, &header, none) < 0/(header.version ^ header.version ^ none[0].effective) != 0/'
    'unit|Landlock|vmm/harden.c|s/ || syscall(SYS_landlock_restrict_self, fd, 0) < 0//'
    'unit|Landlock of ports|vmm/harden.c|s/.ports = version >= 4/.ports = version >= 99/'
    'unit|Landlock of others|vmm/harden.c|s/.scopes = version >= 6/.scopes = version >= 99/'
    'unit|capabilities, of all that is confined|vmm/harden.c|s/r = harden_capabilities(err);/r = 0;/'
    'unit|Landlock, of all that is confined|vmm/harden.c|s/: harden_landlock(err);/: 0;/'
    'unit|no locked memory|vmm/harden.c|s/{RLIMIT_MEMLOCK, [^}]*}/{RLIMIT_CORE, "RLIMIT_CORE"}/'
    'unit|no more memory|vmm/harden.c|s/{RLIMIT_DATA, [^}]*}/{RLIMIT_CORE, "RLIMIT_CORE"}/'
    'unit|no larger files|vmm/harden.c|s/{RLIMIT_FSIZE, [^}]*}/{RLIMIT_CORE, "RLIMIT_CORE"}/'
    'unit|no more descriptors|vmm/harden.c|s/(rlim_t)last + 1 > POLLED_FDS ? (rlim_t)last + 1 : POLLED_FDS,/(rlim_t)last + 512,/'
    'unit|the filter|vmm/harden_thread.c|s/syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0/program.len == 0/'
    'unit|other architectures end the process|vmm/seccomp_rules.c|s/SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS/SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW/'
    'unit|descriptors of calls|vmm/seccomp_rules.c|s/^    if (fds == 0)$/    if (fds != ~0u)/'
    'unit|requests of KVM|vmm/seccomp_rules.c|s/^    if (arg)$/    if (arg \&\& arg->datum_a == 1)/'
    'unit|signals to itself only|vmm/seccomp_rules.c|s/SCMP_SYS(tgkill), 2, kick)/SCMP_SYS(tgkill), 1, kick + 1)/'
    'unit|advice on memory|vmm/seccomp_rules.c|s/allow_only(f, SCMP_SYS(madvise), 1, drop)/allow_only(f, SCMP_SYS(madvise), 0, drop)/'
    'unit|the number of the stream only|vmm/seccomp_rules.c|s/SCMP_SYS(dup2) : SCMP_SYS(dup3), 1, renew)/SCMP_SYS(dup2) : SCMP_SYS(dup3), 0, renew)/'
    'unit|threads apart|vmm/seccomp_rules.c|s/ \&\& (ioctls\[i\].thread & f->thread))/)/'
    'unit|closing only what it was sent|vmm/seccomp_rules.c|s/FD(SENT_1) | FD(SENT_2) | FD(SENT_3),/0,/'
    'unit|two that are sent to one that is never reset|vmm/harden.c|s/HARDEN_ONCE ? SENT_FDS - 1 : SENT_FDS/HARDEN_ONCE ? SENT_FDS : SENT_FDS/'
    'unit|waiting by poll alone|vmm/seccomp_rules.c|s/^    {POLL, MAIN, ALWAYS, 0, "it waits"},/&{SCMP_SYS(ppoll), MAIN, ALWAYS, 0, ""},/'
    'platform|features that the guest is told of|vmm/arch/x86_64/platform.c|s/KVM_CAP_ENFORCE_PV_FEATURE_CPUID, .args = {1}}/KVM_CAP_ENFORCE_PV_FEATURE_CPUID, .args = {0}}/'
    'platform|what a guest may not keep from the host|vmm/arch/x86_64/platform.c|s/r = limit_guest(kvm, err);/r = 0 \&\& limit_guest(kvm, err);/'
    'platform|the memory bus|vmm/arch/x86_64/platform.c|s/{KVM_BUS_LOCK_DETECTION_EXIT}}/{KVM_BUS_LOCK_DETECTION_OFF}}/'
    'platform|the processor|vmm/arch/x86_64/platform.c|s/{KVM_X86_NOTIFY_VMEXIT_ENABLED}}/{0}}/'
    'platform|only what is there|vmm/arch/x86_64/platform.c|s/if (has > 0 \&\& (has \& limits.i..needs))/if (has > -2)/'
    'platform|few registers|vmm/arch/x86_64/platform.c|s/return r < 0 ? r : x86_msr_filter(kvm, err);/return r;/'
    'jail|an IPC namespace|vmm/jail/room.c|s/ | CLONE_NEWIPC | / | /'
    'jail|a network namespace|vmm/jail/room.c|s/ | CLONE_NEWNET | / | /'
    'jail|a PID namespace|vmm/jail/room.c|s/ | CLONE_NEWPID | / | /'
    'jail|a UTS namespace|vmm/jail/room.c|s/ | CLONE_NEWUTS | / | /'
    'jail|a cgroup namespace|vmm/jail/room.c|s/ | CLONE_NEWCGROUP)/)/'
    'jail|a first process|vmm/jail/room.c|s/? start_first() : 0;/? (false \&\& start_first() > 0) : 0;/'
    'jail|a Landlock that is looked for|vmm/jail/room.c|s/note(ret, JAIL_LANDLOCK, find_landlock());/note(ret, JAIL_LANDLOCK, find_landlock() ? NULL : NULL);/'
    'jail|a group of processes|vmm/jail/start.c|s/if (setpgid(0, 0) == 0 \&\& /if (/'
    'jail|a root without set-user-ID programs|vmm/jail/room.c|s/MS_RDONLY | MS_NOSUID | /MS_RDONLY | /'
    'jail|a root without devices|vmm/jail/room.c|s/MS_RDONLY | MS_NOSUID | MS_NODEV | /MS_RDONLY | MS_NOSUID | /'
    'jail|a root without programs|vmm/jail/room.c|s/MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC/MS_RDONLY | MS_NOSUID | MS_NODEV/'
    'vm|a log that holds little|api/daemon/machine/vm.c|s/fcntl(c->said.1., F_SETPIPE_SZ, LOG_BYTES) < 0/false/'
    'vm|few lines of each|api/daemon/machine/vm.c|s/i < LOG_LINES_MAX \&\& /i < LOG_BYTES \&\& /'
    'vm|few lines of all|api/daemon/machine/vm.c|s/.burst = 64/.burst = 6400/'
    'vm|lines that say nothing else|api/daemon/machine/vm.c|s/text.i. = .?.;/(void)text;/'
    'given|a kernel and an image that are only read|api/daemon/machine/snapshot_files.c|s/int fd = open(path, O_RDONLY | O_CLOEXEC);/int fd = open(path, O_RDWR | O_CLOEXEC);/'
    'given|a snapshot that is only read|api/daemon/machine/snapshot_maker.c|s/snapshot_files_open(dir, O_RDONLY, work->contents/snapshot_files_open(dir, O_RDWR, work->contents/'
    'given|a new snapshot that is only read|api/daemon/machine/snapshot_maker.c|s/: snapshot_files_open(dir, O_RDONLY,$/: snapshot_files_open(dir, O_RDWR,/'
    'cpuid|one processor|vmm/arch/x86_64/cpuid.c|s/(e->ebx & 0xffff) | 1u << 16/e->ebx/'
    'cpuid|caches that nobody shares|vmm/arch/x86_64/cpuid.c|s/e->eax &= 0x3fff;/e->eax |= 0;/'
    'cpuid|few features of KVM|vmm/arch/x86_64/cpuid.c|s/e->eax &= BIT(KVM_FEATURE_CLOCKSOURCE) |/e->eax \&= BIT(KVM_FEATURE_STEAL_TIME) | BIT(KVM_FEATURE_CLOCKSOURCE) |/'
    'cpuid|few hints of KVM|vmm/arch/x86_64/cpuid.c|/KVM_FEATURE_CLOCKSOURCE_STABLE_BIT/,/}/s/e->edx = 0;//'
    'cpuid|known components|vmm/arch/x86_64/cpuid.c|s/e->eax &= XCR0_KNOWN;//'
    'cpuid|no other components|vmm/arch/x86_64/cpuid.c|s/ || is_hidden_component(&e))/ || (is_hidden_component(\&e) \&\& e.index > 99))/'
    'jail|an empty root|vmm/jail/room.c|s/note(hello, JAIL_ROOT, make_root());/note(hello, JAIL_ROOT, wanted ? NULL : make_root());/'
    'jail|a root that cannot be written|vmm/jail/room.c|s/MS_REMOUNT | MS_BIND | MS_RDONLY | /MS_REMOUNT | MS_BIND | /'
    'jail|no groups|vmm/jail/room.c|s/setgroups(0, NULL) == 0/hello->version/'
    'jail|a user|vmm/jail/start.c|s/syscall(SYS_setresuid, user, user, user) == 0/syscall(SYS_setresuid, -1, 0, -1) <= 0/'
    'jail|a group|vmm/jail/start.c|s/syscall(SYS_setresgid, user, user, user) == 0/true/'
    'jail|few threads|vmm/jail/start.c|s/setrlimit(RLIMIT_NPROC, &threads) == 0/threads.rlim_cur > 0/'
    'jail|no more user namespaces|vmm/jail/room.c|s/^        allow_no_more();/        (void)allow_no_more;/'
    'jail|nothing kept in the IPC namespace|vmm/jail/room.c|s/^    allow_nothing_kept();/    (void)allow_nothing_kept;/'
    'jail|a personality|vmm/jail/main.c|s/personality(PER_LINUX) < 0/PER_LINUX < 0/'
    'jail|no leftovers|vmm/jail/start.c|s/(void)kill(-1, SIGKILL);//'
    'jail|no environment|vmm/jail/start.c|s/, no_env, AT_EMPTY_PATH/, *no_env ? no_env : child->argv, AT_EMPTY_PATH/'
    'jail|no other descriptors|vmm/jail/start.c|s/(void)close_range((unsigned)last + 1, ~0u, 0);/(void)last;/'
    'jail|no keyring|vmm/jail/main.c|s/r = leave_keyring(err);/r = 0 \&\& leave_keyring(err);/'
    'jail|a keyring that nobody writes to|vmm/jail/main.c|s/syscall(SYS_keyctl, KEYCTL_SETPERM, KEY_SPEC_SESSION_KEYRING, 0) < 0/false/'
    'jail|an end with the first process|vmm/jail/main.c|s/reply.error == ENOMEM/reply.error == ENOMSG/'
    'jail|capabilities of what starts machines|vmm/jail/main.c|s/r = keep_capabilities(err);/r = 0 \&\& keep_capabilities(err);/'
    'jail|no new privileges of what starts machines|vmm/jail/main.c|s/prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || //'
    'jail|one that starts machines that nobody looks into|vmm/jail/main.c|s/ || prctl(PR_SET_DUMPABLE, 0) < 0)/)/'
    'jail|a first process that nobody looks into|vmm/jail/room.c|s/(void)prctl(PR_SET_DUMPABLE, 0);//'
    'jail|a first process without rights|vmm/jail/room.c|s/(void)harden_confine(&ignored);/(void)ignored;/'
    'jail|a first process without descriptors|vmm/jail/room.c|s/(void)close_range(1, ~0u, 0);//'
    'jail|leaving the old root|vmm/jail/room.c|s/if (umount2(".", MNT_DETACH) < 0)/if (false)/'
    'jail|ending with the daemon|vmm/jail/room.c|s/while (read(0, &byte, 1) < 0 \&\& errno == EINTR)/while (pause() < 0 || read(0, \&byte, 1))/'
    'jail|one that is stopped|api/daemon/machine/jail.c|s/(void)kill(jail->pid, SIGKILL);//'
    'jail|strict|api/daemon/machine/jail.c|s/if (jail->strict)/if (jail->pid == 0)/'
    'jail|users: the daemon gives up what they take|api/daemon/machine/jail.c|s/return r < 0 ? r : give_up_users(jail, err);/(void)give_up_users; return r;/'
    'jail|users: neither does who it starts later get it|api/daemon/machine/jail.c|/kept\[0\].inheritable &= ~users;/d'
    'jail|users: a jail with less is none|api/daemon/machine/jail.c|s/if (jail->gave_up \&\& /if (!jail->pid \&\& /'
    'devices|memory ends somewhere|vmm/memory.c|s/return gpa <= m->size && len <= m->size - gpa;/return gpa <= m->size \&\& len <= UINT32_MAX;/'
    'devices|rings lie in memory|vmm/virtio/virtqueue.c|s/if (q->used % 4 != 0 ||/if (q->used % 4 != 0 \&\&/'
    'devices|descriptors lie in memory|vmm/virtio/virtqueue.c|s/if (!memory_contains(q->mem, desc->addr, desc->len)) {/if (desc->len > UINT32_MAX - 1) {/'
    'devices|descriptors have a length|vmm/virtio/virtqueue.c|s/if (desc->len == 0) {/if (q->size == 0) {/'
    'devices|descriptors have known flags|vmm/virtio/virtqueue.c|s/if ((desc->flags & ~(VRING_DESC_F_NEXT | VRING_DESC_F_WRITE)) != 0) {/if (q->size == 0) {/'
    'devices|descriptors are in the table|vmm/virtio/virtqueue.c|s/if (index >= q->size) {/if (q->size == 0) {/'
    'devices|chains end|vmm/virtio/virtqueue.c|s/steps < q->size; steps++/steps < 4096; steps++/'
    'devices|readable before writable|vmm/virtio/virtqueue.c|s/if (chain->n_writable > 0) {/if (q->size == 0) {/'
    'devices|no index too far ahead|vmm/virtio/virtqueue.c|s/if (waiting > q->size) {/if (q->size == 0) {/'
    'devices|what is taken back is not used|vmm/virtio/virtqueue.c|s/q->next_avail = (uint16_t)(q->next_avail - n);/q->next_avail = (uint16_t)(q->next_avail - n + (n > 0));/'
    'devices|no kick of a device that is off|vmm/virtio/mmio.c|s/if (!virtio_mmio_is_active(t) || queue >= t->device->ops->n_queues) {/if (queue >= t->device->ops->n_queues) {/'
    'devices|no kick of a queue that is not|vmm/virtio/mmio.c|s/if (!virtio_mmio_is_active(t) || queue >= t->device->ops->n_queues) {/if (!virtio_mmio_is_active(t)) {/'
    'devices|queues before DRIVER_OK|vmm/virtio/mmio.c|s/if (!queues_are_ready(t)) {/if (t->failure) {/'
    'devices|queues stay as they are|vmm/virtio/mmio.c|s/has_status(t, STATUS_DRIVER_OK) || (q->ready \&\& offset != VIRTIO_MMIO_QUEUE_READY)/q->desc > UINT32_MAX/'
    'devices|a reset forgets the selector|vmm/virtio/mmio.c|s/^    t->queue_sel = 0;//'
    'devices|a reset forgets the queues|vmm/virtio/mmio.c|s/^        virtqueue_reset(&t->queues.i.);/        t->queues[i].ready = false;/'
    'devices|the configuration has an end|vmm/virtio/mmio.c|s/if (offset >= size || len > size - offset) {/if (offset >= 512 || len > 512 + size) {/'
    'devices|requests have a header|vmm/virtio/blk.c|s/if (b->chain.readable_len < HEADER_SIZE || b->chain.writable_len < 1) {/if (b->chain.writable_len < 1) {/'
    'devices|packets are as long as they say|vmm/virtio/vsock_tx.c|s/if (p.len > v->chain.readable_len - VSOCK_HEADER_SIZE) {/if (p.len > UINT32_MAX - 1) {/'
    'devices|no more than the credit|vmm/virtio/vsock_tx.c|s/if (p->len > VSOCK_BUF_ALLOC - (v->received - v->fwd_cnt)) {/if (p->len > UINT32_MAX - 1) {/'
    'devices|packets are of the guest|vmm/virtio/vsock_tx.c|s/if (p->src_cid != v->guest_cid || p->dst_cid != VSOCK_HOST_CID) {/if (p->dst_cid != VSOCK_HOST_CID) {/'
    'devices|packets are of the connection|vmm/virtio/vsock_tx.c|s/p->type == VIRTIO_VSOCK_TYPE_STREAM && p->src_port == VSOCK_GUEST_PORT &&/p->src_port == VSOCK_GUEST_PORT \&\&/'
    'devices|answers have an end|vmm/virtio/vsock_tx.c|s/if (v->n_replies == VSOCK_REPLIES_MAX) {/if (v->n_replies == 4096) {/'
    'devices|receive buffers hold a header|vmm/virtio/vsock_rx.c|s/chain->n_readable != 0 || chain->writable_len <= VSOCK_HEADER_SIZE/chain->n_readable != 0/'
    'devices|no more than the guest takes|vmm/virtio/vsock_rx.c|s/uint32_t most = credit - total < PACKET_MAX ? credit - total : PACKET_MAX;/uint32_t most = PACKET_MAX;/'
    'devices|a reset ends the connection|vmm/virtio/vsock.c|s/^    v->n_replies = 0;//'
    'devices|a broken rule ends the machine|vmm/machine.c|s/^    check_rules(d);//'
    'devices|windows have an end|vmm/machine.c|s/if (window < machine_n_devices)/if (window < LAYOUT_DEVICES_MAX)/'
    'guest|chains end|vmm/virtio/virtqueue.c|s/steps < q->size; steps++/steps < 65535; steps++/'
    'guest|no kick of a device that is off|vmm/virtio/mmio.c|s/if (!virtio_mmio_is_active(t) || queue >= t->device->ops->n_queues) {/if (queue >= t->device->ops->n_queues) {/'
    'guest|answers have an end|vmm/virtio/vsock_tx.c|s/if (v->n_replies == VSOCK_REPLIES_MAX) {/if (v->n_replies == 4096) {/'
    'filter|calls of other architectures|guest-init/filter.c|s/put_return(&p, SECCOMP_RET_KILL_PROCESS)/put_return(\&p, SECCOMP_RET_ALLOW)/'
    'filter|other kinds of namespaces|guest-init/filter.c|s/ | CLONE_NEWUSER | / | /'
    'skill|an empty bounding set|guest-init/boot.c|s/return empty_bounding_set(err);/return geteuid() == 0 ? 0 : empty_bounding_set(err);/'
    'skill|the filter|guest-init/skill.c|s/r = filter_install();/r = 0;/'
    'skill|no new privileges|guest-init/skill.c|s/prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || //'
    'skill|no groups|guest-init/skill.c|s/setgroups(0, NULL) < 0/setgroups(1, (const gid_t[]){4}) < 0/'
    'skill|a user of its own|guest-init/skill.c|s/setresuid(SKILL_UID, SKILL_UID, SKILL_UID) < 0/setresuid(0, 0, 0) < 0/'
    'skill|a group of its own|guest-init/skill.c|s/setresgid(SKILL_UID, SKILL_UID, SKILL_UID) < 0/setresgid(0, 0, 0) < 0/'
    'skill|processes of others unseen|guest-init/boot.c|s/"hidepid=invisible"/NULL/'
    'skill|saying which memory limit|guest-init/execute.c|s/if (usage.out_of_memory)/if (usage.peak_bytes == 0)/'
    'skill|saying what could not be started|guest-init/execute.c|s/usage.not_started < UINT32_MAX ? /usage.not_started == UINT32_MAX ? /'
    'limits|few threads|vmm/jail/limits.c|s/    {"pids.max", .*//'
    'limits|a share of the processors|vmm/jail/limits.c|s/    {"cpu.max", .*//'
    'limits|ending as a whole|vmm/jail/limits.c|s/    {"memory.oom.group", .*//'
    'limits|no swap|vmm/jail/limits.c|s/write_file(cell_fd, "memory.swap.max", "0") < 0/false/'
    'limits|an end with what started it|vmm/jail/limits.c|s/end_leftovers(limits->machines_fd, LEFTOVERS_MS)/(limits->machines_fd < 0 ? end_leftovers(0, 1) : true)/'
    'limits|an end of what is left in a cell|vmm/jail/limits.c|s/!is_empty(fd) \&\& faccessat/fd > 9999 \&\& faccessat/'
    'limits|being told of memory|api/daemon/machine/vm.c|s/vm->memory = jail_look(vm->jail, vm->cell);/vm->memory = JAIL_MEMORY_ENOUGH;/'
    'limits|whose memory was short|vmm/jail/limits.c|s/return number_of(events, "oom") > 0 ? JAIL_MEMORY_OVER/return number_of(events, "oom") < 9 ? JAIL_MEMORY_OVER/'
    'limits|cgroups that go|api/daemon/machine/jail.c|s/^        leave(jail);/        (void)leave;/'
    'limits|memory|vmm/jail/limits.c|s/return write_file(cell_fd, "memory.max", text);/return 0;/'
    'limits|a share by tenant|api/daemon/machine/pool.c|s/shares_enter(&pool->shares, &m->share, wish->party, m->vm.weight_fd);//'
    'damage|checksums of sections|vmm/state.c|s/section_crc(head, payload, len) != crc/section_crc(head, payload, len) == crc + 1/'
    'damage|versions of sections|vmm/state.c|s/if (version != kind->version)/if (version > 99)/'
    'damage|each section once|vmm/state.c|s/if (state->sections.i..data)/if (state->sections[i].len == UINT32_MAX)/'
    'damage|nothing behind the sections|vmm/state.c|s/if (bytes_left(&r) > 0)/if (bytes_left(\&r) > 1)/'
    'damage|the format|vmm/state.c|s/if (format != STATE_FORMAT)/if (format > 99)/'
    'damage|a memory as long as the machine'"'"'s|vmm/snapshot.c|s/(uint64_t)st.st_size != memory_bytes/(uint64_t)st.st_size < memory_bytes - LAYOUT_PAGE_SIZE/'
    'damage|the checksum of a working set|vmm/working_set.c|s/if (crc32_update(0, data, len - 4) != bytes_get_u32(&tail))/if (bytes_get_u32(\&tail) == 1)/'
    'damage|the length of a working set|vmm/working_set.c|s/ || len != HEADER_SIZE + 8ull . n_ranges + 4)/ || len < HEADER_SIZE + 4)/'
    'categories|sessions of one tenant|api/daemon/registry/registry_sessions.c|s/SELECT "tenant_id = ?1 AND id = ?2"/SELECT "?1 IS NOT NULL AND id = ?2"/'
    'digests|a snapshot is what was written|api/daemon/machine/snapshot_files.c|s/strcmp(now.files.i..digest, contents->files.i..digest) != 0)/now.files[i].digest[0] == 0)/'
    'digests|of this image|api/daemon/machine/snapshot_files.c|/"image_sha256", inputs->image, err) < 0/d'
    'digests|of this VMM|api/daemon/machine/snapshot_files.c|/"vmm_sha256", inputs->vmm, err) < 0/d'
    'digests|of this kernel|api/daemon/machine/snapshot_files.c|/"kernel_sha256", inputs->kernel, err) < 0/d'
    'digests|of this processor|api/daemon/machine/snapshot_files.c|/"cpu_fingerprint", inputs->fingerprint, err) < 0/d'
    'digests|of as much memory|api/daemon/machine/snapshot_files.c|/"memory_mib", inputs->memory_mib, err) < 0/d'
    'digests|where each page is|api/daemon/machine/snapshot_files.c|/digest_number(sha, (at + i)/d'
    'digests|an image is what was built|api/daemon/machine/checksum.c|s/if (strcmp(wanted, hex) != 0)/if (wanted[0] == 0)/'
    'digests|a checksum is of this file|api/daemon/machine/checksum.c|s/if (strcmp(of, name) != 0)/if (strcmp(of, name) != 0 \&\& !of[0])/'
    'frames|each at its stage|api/daemon/machine/guest_decoder.c|s/if (!is_due(d, type))/if (!is_due(d, type) \&\& len > PROTO_PAYLOAD_MAX)/'
    'frames|each as long as it may be|api/daemon/machine/guest_decoder.c|s/if (len < rules.type..min .. len > rules.type..max)/if (len > PROTO_PAYLOAD_MAX)/'
    'frames|reserved bytes|api/daemon/machine/guest_decoder.c|s/if (d->header.5. != 0 .. d->header.6. != 0 .. d->header.7. != 0)/if (d->header[4] == 0)/'
    'frames|an exit that can be|api/daemon/machine/guest_decoder.c|s/if (!bytes_done(&r) .. e.code > EXIT_CODE_MAX .. e.signal > EXIT_SIGNAL_MAX/if (!bytes_done(\&r)/'
    'frames|no more than is let|api/daemon/machine/guest_decoder.c|s/if (.seen > limit)/if (*seen > limit \&\& limit == 0)/'
    'frames|text that steers nothing|api/daemon/machine/guest_decoder.c|s/if (c < 0x20 .. /if (/'
    'frames|a version that is spoken|api/daemon/machine/guest_decoder.c|s/if (version != PROTO_VERSION)/if (version == 0)/'
    'archives|an end|api/skill/source.c|s/if (expanded > limits->expanded_bytes)/if (expanded == UINT64_MAX)/'
    'archives|a ratio|api/skill/source.c|s/ \&\& expanded . limits->ratio > archive_bytes)/ \&\& archive_bytes == UINT64_MAX)/'
    'archives|what is skipped counts|api/skill/source.c|s/if (source->unpacked > overhead \&\&/if (source->unpacked == UINT64_MAX \&\&/'
    'archives|no name upwards|api/skill/file_names.c|s/if (n == 2 \&\& part.0. == .\.. \&\& part.1. == .\..)/if (depth > NAMES_DEPTH_MAX)/'
    'archives|no absolute name|api/skill/file_names.c|s/if (raw.0. == .\/.)/if (raw[0] == 0)/'
    'archives|no control characters|api/skill/file_names.c|s/if (is_control(code))/if (is_control(code) \&\& code == 0)/'
    'archives|few entries of a directory|api/skill/zip_directory.c|s/if (++.ret_n > max)/if (++*ret_n == 0)/'
    'queue|no more slots than are the tenant'"'"'s|api/daemon/engine/fair_queue.c|s/unsigned max = t->limits.max_running;/unsigned max = 0;/'
    'queue|slots by weight|api/daemon/engine/fair_queue.c|s/(us - entry->charged_us) . SCALE . t->limits.weight/(us - entry->charged_us) * SCALE/'
    'queue|what ran is charged|api/daemon/engine/fair_queue.c|s/t->had += (us - entry->charged_us)/t->had += 0 * (us - entry->charged_us)/'
    'floods|no more slots than are the tenant'"'"'s|api/daemon/engine/fair_queue.c|s/unsigned max = t->limits.max_running;/unsigned max = 0;/'
    'trail|descriptors of machines|api/daemon/machine/vm.c|s/^    fd_close(&vm->log_fd);//'
    'trail|processes of machines|api/daemon/machine/vm.c|s/vm->status = process_reap(vm->pid);/vm->status = 0;/'
    'trail|cgroups of machines|api/daemon/machine/jail.c|s/^        leave(jail);/        (void)leave;/'
    'relay|addresses that are not public|api/daemon/egress/reachable.c|s/const char \*kind = egress_address_kind(found);/const char *kind = NULL;/'
    'relay|own addresses|api/daemon/egress/reachable.c|s/egress_address_is_own(found)/!found/'
    'relay|every address of a name|api/daemon/egress/reachable.c|/is nobody.s honest name/,/check_address/s/i < n/i < 1/'
    'relay|the policy|api/daemon/egress/reachable.c|s/if (rules->policy && !/if (rules->policy \&\& !name \&\& !/'
    'relay|the request|api/daemon/egress/reachable.c|s/if (rules->asked && !/if (rules->asked \&\& !name \&\& !/'
    'relay|ports that were told|api/daemon/egress/egress.c|s/ || !names_has_port(&e->names.all\[at\], port)//'
    'relay|no more room than there were bytes|api/daemon/egress/egress.c|s/ || room > s->in_flight//'
    'relay|rows for who is reached|api/daemon/egress/records.c|s/records->n_refused < EGRESS_REFUSALS_MAX/records->n_refused < EGRESS_RECORDS_MAX/'
    'owners|a tenant|api/daemon/engine/execution_run.c|s/POOL_OWNER_SIZE, "%s.%s", e->tenant/POOL_OWNER_SIZE, "%.0s%s", e->tenant/'
    'owners|a skill|api/daemon/engine/execution_run.c|s/reuse == TENANT_REUSE_SKILL ? e->skill_digest : ""/reuse == TENANT_REUSE_SKILL ? "" : "one"/'
    'resets|the state of the vCPU and the chips|vmm/snapshot.c|/^int snapshot_reset/,/^}/s/r = arch_state_reload(&m->kvm, &origin->state, err);/r = 0;/'
    'resets|the memory|vmm/snapshot.c|s/r = private_pages_reset(&origin->pages, ret_pages, err);/r = (*ret_pages = 0);/'
    'resets|devices that are new ones|vmm/snapshot.c|/^int snapshot_reset/,/^}/s/machine_renew_devices(m, vsock_fd);/(void)vsock_fd;/'
    'resets|devices as they were saved|vmm/snapshot.c|/^int snapshot_reset/,/^}/s/r = snapshot_load_devices(m, &origin->state, err);/r = 0;/'
    'control|none of a guest that ended|vmm/control_loop.c|/^static int reset(/,/^}/s/if (machine_get_end(l->m, &why) != MACHINE_RUNS)/if (machine_get_end(l->m, \&why) > 99)/'
    'control|none of a machine for one run|vmm/control_loop.c|s/if (!l->origin)/if (l->vsock_fd < 0)/'
    'caller|the version|api/daemon/http/http_reader.c|s/if (line.5. != .1.)/if (line[5] == 0)/'
    'caller|a length that is none|api/daemon/http/http_reader.c|s/ || length.strspn(length, DIGITS).))/))/'
    'caller|a length that no number holds|api/daemon/http/http_reader.c|s/strlen(length) > LENGTH_MAX/strlen(length) > HTTP_HEAD_MAX/'
    'taken|KVM is closed|vmm/main.c|s/^        fd_close(&m->kvm.dev_fd);/        (void)m;/'
    'taken|/proc is closed|vmm/main.c|s/^    fd_close(&proc_fd);/    (void)fd_steal(\&proc_fd);/'
    'host|harden_process|vmm/main.c|s/return harden_process(proc_fd, (int)last, err);/return (void)proc_fd, (void)last, (void)err, 0;/'
    'host|the state is closed|vmm/main.c|s/^    fd_close(&source.state_fd);//'
    'host|the memory is closed|vmm/main.c|s/^    fd_close(&source.memory_fd);//'
    'host|the working set is closed|vmm/main.c|s/^    fd_close(&source.working_set_fd);//'
    'taken|harden_confine|vmm/main.c|s/int r = harden_confine(err);/int r = 0;/'
    'host|harden_limits|vmm/main.c|s/r = harden_limits(&plan, err);/r = 0;/'
    'host|the main thread|vmm/main.c|s/r = harden_thread(&plan, HARDEN_MAIN, err);/r = 0;/'
    'host|the vCPU thread|vmm/vcpu.c|s/harden_thread(m->plan, HARDEN_VCPU, &err) >= 0/err.message[0] == 0/'
)

# Each line of the guest's filter.
while read -r first; do
    mutations+=("filter|$first|guest-init/filter.c|/^    {$first, /d")
done < <(sed -n 's/^    {\(SYS_[a-z0-9_]*\|LAST_CALL + 1\), .*/\1/p' "$root/guest-init/filter.c")

# Each word of features that the guest is not told of, by its first one, and each leaf.
while IFS=: read -r line what; do
    mutations+=("cpuid|$what|vmm/arch/x86_64/cpuid.c|$line{s/BIT([0-9]*)/0/;s/0xffffffffu/0/}")
done < <(awk '/^} hidden/ { on = 1 } /^};/ { on = 0 }
    on && /(BIT|0xffffffffu)/ { sub(/^ */, ""); print NR ":" $0 }' "$root/vmm/arch/x86_64/cpuid.c" | tr '|' ',')
while IFS= read -r leaf; do
    mutations+=("cpuid|leaf $leaf|vmm/arch/x86_64/cpuid.c|/^    case $leaf:/d")
done < <(sed -n 's/^    case \(0x[0-9a-f]*\):/\1/p' "$root/vmm/arch/x86_64/cpuid.c")

declare -A programs=([unit]=unit_vmm_harden [platform]=unit_vmm_platform [filter]=unit_guest_filter
    [cpuid]=unit_vmm_cpuid [control]=unit_vmm_control [vm]=unit_daemon_vm [given]='daemon_snapshots daemon_machines'
    [digests]='unit_daemon_snapshot unit_daemon_checksum' [frames]=unit_daemon_decoder
    [archives]='unit_skill_archive unit_skill_bombs unit_skill_zip'
    [queue]=unit_daemon_fair_queue)
declare -A cases=(
    [limits]='strict_has_all_layers_as_root no_machine_outlives_what_started_it tenants_share_by_tenant_and_not_by_machine
        an_execution_is_told_that_its_machine_took_too_much an_execution_is_told_that_the_host_was_short_of_memory'
    [taken]=each_layer_of_a_vmm_denies_what_it_is_said_to
    [guest]=programs_end_only_their_machine
    [skill]='nothing_is_left_however_it_is_started limits_are_named cannot_become_root cannot_touch_init'
    [damage]=damaged_files_never_start_a_guest
    [categories]=twenty_categories_leave_the_host_untouched
    [floods]=floods_leave_a_neighbour_its_time
    [trail]=hostile_executions_leave_no_trail
    [relay]=a_guest_that_speaks_to_the_relay_reaches_what_is_permitted
    [host]=machines_have_given_up_what_they_do_not_need
    [owners]=owners_never_meet
    [resets]=resets_after_hostile_guests
    [caller]=broken_http
)

# What the cases of tests/e2e/run.sh need beside the software host.
guests=(hostile-init hostile-guest skillvm-vmm-taken skillvm-vmm-verify guest-calls)

# What is configured once is built by itself: to look at that again takes longer than a changed file does.
declare -A configured=()
builds() { # PRESET TARGET…; a change that does not build proves nothing
    local how=(cmake/build.sh "$1")
    [ -z "${configured[$1]:-}" ] || how=(cmake --build --preset "$1" --target)
    "${how[@]}" "${@:2}" >build.log 2>&1 || { tail -n 20 build.log >&2; return 1; }
    configured[$1]=1
}

# Whether a test fails in the copy; what it said is in test.log.
is_found() { # one of those that are named at the top
    local name only=()
    if [ -n "${programs[$1]:-}" ]; then
        # shellcheck disable=SC2086 # they are words
        builds release ${programs[$1]} || return 1
        for name in ${programs[$1]}; do
            "build/tests/$name" >test.log 2>&1 || return 0
        done
        return 1
    fi
    if [ "$1" = jail ]; then
        builds release unit_daemon_jail unit_daemon_jail_service || return 1
        # A layer that is missing has its tests skipped; what does not end has been found, too.
        timeout --kill-after=1 20 build/tests/unit_daemon_jail >test.log 2>&1 && ! grep -q SKIPPED test.log &&
            timeout --kill-after=1 20 build/tests/unit_daemon_jail_service >test.log 2>&1 &&
            ! grep -q SKIPPED test.log && return 1
        return 0
    fi
    if [ "$1" = devices ]; then
        builds sanitize fuzz_devices || return 1
        timeout 300 build-sanitize/tests/fuzz_devices tests/fuzz/corpus/devices >test.log 2>&1 && return 1
        return 0
    fi
    builds release softhost "${guests[@]}" || return 1
    for name in ${cases[$1]}; do only+=(--only "$name"); done
    HOSTILE_SEED=1 HOSTILE_PROGRAMS=5000 tests/e2e/run.sh --build build "${only[@]}" >test.log 2>&1 && return 1
    for name in ${cases[$1]}; do grep -q "^FAIL $name:" test.log && return 0; done
    return 1
}

# By what it was found: the first test that failed or was skipped, or what a fuzz target said.
by_what() {
    local line
    line=$(grep -a -m 1 -oE '^\[  (FAILED|SKIPPED) +\] [a-z].*|^FAIL .*' test.log) ||
        line=$(grep -a -m 1 -oE 'runtime error: .*|ERROR: .*' test.log) ||
        line='an end without a word, or none in time'
    cut -c -160 <<<"$line"
}

git -C "$root" archive HEAD | tar -x -C "$copy"
cd "$copy"
for where; do
    if is_found "$where"; then
        echo "the tests of $where fail with nothing taken away:" >&2
        tail -n 20 test.log >&2
        exit 2
    fi
done
for mutation in "${mutations[@]}"; do
    IFS='|' read -r where what file change <<<"$mutation"
    [[ " $* " = *" $where "* ]] || continue
    cp "$file" original
    sed -i "$change" "$file"
    if cmp -s "$file" original; then
        echo "STALE | $where | $what | nothing in $file is so any more"
        survived=$((survived + 1))
    elif is_found "$where"; then
        echo "found | $where | $what | $(by_what)"
    else
        echo "MISSED | $where | $what |"
        survived=$((survived + 1))
    fi
    cp original "$file"
done
echo "$survived survived, in $SECONDS s"
exit $((survived > 0))
