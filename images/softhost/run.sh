#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one command as root in a fresh software host, with KVM, and passes on its output and exit
# status. The host's data directory is RAM; nothing survives.
#
#   images/softhost/run.sh --share DIR [options] -- CMD...
#
#   --share DIR              DIR/softhost as filled by build.sh
#   --kernel VERSION         another kernel than Debian's own: 6.12
#   --vmx                    Intel's VMX in Bochs instead of AMD-V in QEMU; slow
#   --timeout S              end after S seconds with status 124 (default 120)
#   --memory MIB             RAM of the host (default 3072)
#   --counting               its clock counts one nanosecond per instruction
#   --kvm OPTION=VALUE       an option of the module kvm, not with --vmx; may repeat
#   --mount HOSTDIR:/mnt/X   HOSTDIR read-only at /mnt/X (with --vmx a copy); may repeat
#   --env NAME=VALUE         set in CMD's environment; may repeat
#   --console                kernel console on standard error as well
#
# CMD starts in /run/scratch (RAM) with the build at /opt/skillvm. Status 125: the host failed.
set -u

usage() {
    sed -n '/^# *images/,/^# CMD/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
fail() {
    echo "run.sh: $*" >&2
    exit 125
}
share='' kernel='' vmx='' limit=120 memory=3072 counting='' console='' mounts=() env=() kvm=''
while [ $# -gt 0 ]; do
    case $1 in
    --share) share=$2; shift 2 ;;
    --kernel) kernel=$2; shift 2 ;;
    --vmx) vmx=1; shift ;;
    --timeout) limit=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --counting) counting=1; shift ;;
    --kvm) kvm="$kvm kvm.$2"; shift 2 ;;
    --mount) mounts+=("$2"); shift 2 ;;
    --env) env+=("$2"); shift 2 ;;
    --console) console=1; shift ;;
    --) shift; break ;;
    *) usage ;;
    esac
done
if [ -z "$share" ] || [ $# = 0 ]; then usage; fi
if [ -n "$vmx" ] && [ -n "$kvm" ]; then usage; fi
images=$share/softhost
boot=$images${kernel:+/$kernel}${vmx:+/vmx}
if [ -n "$vmx" ]; then
    needed=("$boot/boot.iso") program=bochs packages='bochs bochs-term bochsbios'
else
    needed=("$boot/vmlinux" "$boot/initrd.img") program=qemu-system-x86_64 packages=qemu-system-x86
fi
for f in "${needed[@]}" "$images/root.erofs" "$images/payload.erofs"; do
    [ -e "$f" ] || fail "$f is missing; build.sh${kernel:+ --kernel $kernel}${vmx:+ --vmx} makes it"
done
command -v $program >/dev/null || fail "$program is missing (Debian: $packages)"

dir=$(mktemp -d "${TMPDIR:-/tmp}/skillvm-run.XXXXXX") || exit 125
emulator='' readers=''
# What ends an emulator at the limit, and is ended with it; whatever ends this ends both.
limited=(setpriv --pdeathsig KILL timeout --signal KILL "$limit" setpriv --pdeathsig KILL)
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    [ -n "$emulator" ] && { kill -9 "$emulator" && wait "$emulator"; } 2>/dev/null
    # shellcheck disable=SC2086
    [ -n "$readers" ] && kill $readers 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

mkfifo "$dir/out" "$dir/err"
cat "$dir/out" &
readers=$!
cat "$dir/err" >&2 &
readers="$readers $!"
exec 8>"$dir/out" 9>"$dir/err"
mkdir "$dir/job"
{
    for pair in "${env[@]+"${env[@]}"}"; do printf 'export %q\n' "$pair"; done
    printf 'exec '
    printf '%q ' "$@"
} >"$dir/job/command"
: >"$dir/status"
: >"$dir/console"

# AMD-V. The command comes by fw_cfg, its output goes through virtio's serial ports.
start_qemu() {
    local args=() n=0 pair loglevel=quiet khz clock=''
    mkfifo "$dir/tick.in" "$dir/tick.out"
    exec 7<>"$dir/tick.in" 6<>"$dir/tick.out"
    # TCG can lose an interrupt when AMD-V is in use (its helpers change the set of pending ones
    # without a lock). The next one delivers both, so one comes from outside every second.
    (
        exec 8>&- 9>&-
        while sleep 1; do echo >&7; done
    ) &
    ticker=$!
    readers="$readers $ticker"
    for pair in "${mounts[@]+"${mounts[@]}"}"; do
        printf 'm%d %s\n' $n "${pair#*:}" >>"$dir/mounts"
        args+=(-fsdev "local,id=m$n,path=${pair%%:*},security_model=none,readonly=on,multidevs=remap"
            -device "virtio-9p-pci,fsdev=m$n,mount_tag=m$n")
        n=$((n + 1))
    done
    [ $n -gt 0 ] && args+=(-fw_cfg "name=opt/skillvm/mounts,file=$dir/mounts")
    if [ -n "$counting" ]; then
        args+=(-icount 'shift=0,sleep=off')
    else # the same as api/host/qemu.c tells its kernel, where run.sh is in a build
        khz=$("$share/../../bin/tsc-khz" 2>/dev/null) && clock=" tsc_early_khz=$khz"
    fi
    [ -n "$console" ] && loglevel=loglevel=7
    "${limited[@]}" qemu-system-x86_64 -nodefaults -no-user-config -display none \
        -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny \
        -no-reboot -machine pc,usb=off,vmport=off -accel tcg,tb-size=256 -cpu EPYC,-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,-nrip-save,-xsavec -smp 1 \
        -m "$memory" -kernel "$boot/vmlinux" -initrd "$boot/initrd.img" \
        -append "console=ttyS0 $loglevel panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on audit=0 cryptomgr.notests acpi=noirq noreplace-smp$clock$kvm" \
        -serial "file:$dir/console" -device virtio-rng-pci -rtc base=utc \
        -drive "file=$images/root.erofs,format=raw,if=virtio,readonly=on" \
        -drive "file=$images/payload.erofs,format=raw,if=virtio,readonly=on" \
        -fw_cfg "name=opt/skillvm/command,file=$dir/job/command" -device virtio-serial-pci \
        -chardev file,id=o,path=/proc/self/fd/8 -device virtserialport,chardev=o,name=out \
        -chardev file,id=e,path=/proc/self/fd/9 -device virtserialport,chardev=e,name=err \
        -chardev "file,id=s,path=$dir/status" -device virtserialport,chardev=s,name=status \
        -chardev "pipe,id=t,path=$dir/tick" -device virtserialport,chardev=t,name=tick \
        "${args[@]+"${args[@]}"}" </dev/null >"$dir/emulator" 2>&1 &
    emulator=$!
}

# VMX with EPT and unrestricted guests. Nothing of virtio here: the command and the copies come
# on a disk, its output goes through serial ports. Time passes with instructions, and where all
# wait it leaps, so that what is slow from outside does not run into its own time limits.
start_bochs() {
    local pair name ips=300000000
    mkdir "$dir/job/mnt"
    for pair in "${mounts[@]+"${mounts[@]}"}"; do
        name=${pair#*:/mnt/}
        mkdir -p "$dir/job/mnt/$name"
        cp -r "${pair%%:*}/." "$dir/job/mnt/$name/" || fail "$pair: cannot be copied"
    done
    PATH=$PATH:/usr/sbin:/sbin mkfs.erofs --quiet -T0 "$dir/job.erofs" "$dir/job" >/dev/null ||
        fail 'mkfs.erofs failed'
    truncate -s %516096 "$dir/job.erofs"
    # Bochs puts a lock beside a disk's path, so that each run has paths of its own.
    ln -s "$(readlink -f "$images/root.erofs")" "$dir/root.erofs"
    ln -s "$(readlink -f "$images/payload.erofs")" "$dir/payload.erofs"
    [ -n "$counting" ] && ips=1000000000
    cat >"$dir/bochsrc" <<END
config_interface: textconfig
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=corei7_haswell_4770, count=1, ips=$ips, reset_on_triple_fault=0
memory: guest=$memory, host=$((memory < 2048 ? memory : 2048))
clock: sync=none, time0=utc
pci: enabled=1, chipset=i440fx
speaker: enabled=0
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15
ata0-master: type=disk, mode=flat, path=$dir/root.erofs
ata0-slave: type=disk, mode=flat, path=$dir/payload.erofs
ata1-master: type=cdrom, path=$boot/boot.iso, status=inserted
ata1-slave: type=disk, mode=flat, path=$dir/job.erofs
boot: cdrom
com1: enabled=1, mode=file, dev=$dir/console
com2: enabled=1, mode=file, dev=$dir/out
com3: enabled=1, mode=file, dev=$dir/err
com4: enabled=1, mode=file, dev=$dir/status
log: $dir/emulator
panic: action=fatal
error: action=report
info: action=report
END
    # Debian's is built with the debugger: it waits for a command, and has a terminal of its own
    # for the screen, at which it hangs unless somebody reads.
    echo c >"$dir/debugger"
    "${limited[@]}" stdbuf -oL bochs -q -f "$dir/bochsrc" -rc "$dir/debugger" \
        </dev/null >"$dir/screen" 2>&1 &
    emulator=$!
    (
        exec 8>&- 9>&-
        until grep -q '^Bochs connected to screen' "$dir/screen"; do
            kill -0 $emulator || exit
            sleep 0.1
        done
        screen=$(sed -n 's/^Bochs connected to screen "\(.*\)"$/\1/p' "$dir/screen")
        stty -F "$screen" raw -echo
        exec cat "$screen" >/dev/null
    ) 2>/dev/null &
    readers="$readers $!"
}

ticker=''
end=$((SECONDS + limit))
if [ -n "$vmx" ]; then start_bochs; else start_qemu; fi
wait $emulator 2>/dev/null
emulator=''
[ -z "$ticker" ] || kill "$ticker"
exec 8>&- 9>&-
# shellcheck disable=SC2086
wait $readers
readers=''
[ -n "$console" ] && cat "$dir/console" >&2
[ -s "$dir/status" ] && exit "$(cat "$dir/status")"
if [ $SECONDS -ge $end ]; then
    echo "run.sh: no end after $limit s, killed. Last console lines:" >&2
    tail -n 15 "$dir/console" >&2
    exit 124
fi
echo 'run.sh: the host ended without a status. Its last words:' >&2
[ ! -s "$dir/screen" ] || tail -c 2000 "$dir/screen" >&2
tail -n 40 "$dir/emulator" "$dir/console" >&2
exit 125
