#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one command as root in a fresh software host, with KVM, and passes on its output and exit
# status. The host's data directory is RAM; nothing survives.
#
#   images/softhost/run.sh --share DIR [options] -- CMD...
#
#   --share DIR              DIR/softhost as filled by build.sh
#   --timeout S              end after S seconds with status 124 (default 120)
#   --memory MIB             RAM of the host (default 3072)
#   --counting               its clock counts one nanosecond per instruction
#   --mount HOSTDIR:/mnt/X   HOSTDIR read-only at /mnt/X; may repeat
#   --env NAME=VALUE         set in CMD's environment; may repeat
#   --console                kernel console on standard error as well
#
# CMD starts in /run/scratch (RAM) with the build at /opt/skillvm. Status 125: the host failed.
set -u

usage() {
    sed -n '/^# *images/,/^# CMD/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
share='' limit=120 memory=3072 counting='' console='' mounts=() env=()
while [ $# -gt 0 ]; do
    case $1 in
    --share) share=$2; shift 2 ;;
    --timeout) limit=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --counting) counting=1; shift ;;
    --mount) mounts+=("$2"); shift 2 ;;
    --env) env+=("$2"); shift 2 ;;
    --console) console=1; shift ;;
    --) shift; break ;;
    *) usage ;;
    esac
done
if [ -z "$share" ] || [ $# = 0 ]; then usage; fi
for f in vmlinuz initrd.img root.erofs payload.erofs; do
    [ -e "$share/softhost/$f" ] || { echo "run.sh: $share/softhost/$f is missing" >&2; exit 125; }
done
command -v qemu-system-x86_64 >/dev/null ||
    { echo 'run.sh: qemu-system-x86_64 is missing (Debian: qemu-system-x86)' >&2; exit 125; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/skillvm-run.XXXXXX") || exit 125
qemu='' readers=''
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    [ -n "$qemu" ] && kill -9 "$qemu" 2>/dev/null
    # shellcheck disable=SC2086
    [ -n "$readers" ] && kill $readers 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

mkfifo "$dir/out" "$dir/err" "$dir/tick.in" "$dir/tick.out"
cat "$dir/out" &
readers=$!
cat "$dir/err" >&2 &
readers="$readers $!"
exec 8>"$dir/out" 9>"$dir/err" 7<>"$dir/tick.in" 6<>"$dir/tick.out"
# TCG can lose an interrupt when AMD-V is in use (its helpers change the set of pending ones
# without a lock). The next one delivers both, so one comes from outside every second.
(
    exec 8>&- 9>&-
    while sleep 1; do echo >&7; done
) &
readers="$readers $!"
ticker=$!
{
    for pair in "${env[@]+"${env[@]}"}"; do printf 'export %q\n' "$pair"; done
    printf 'exec '
    printf '%q ' "$@"
} >"$dir/command"
: >"$dir/status"

args=()
n=0
for pair in "${mounts[@]+"${mounts[@]}"}"; do
    printf 'm%d %s\n' $n "${pair#*:}" >>"$dir/mounts"
    args+=(-fsdev "local,id=m$n,path=${pair%%:*},security_model=none,readonly=on,multidevs=remap"
        -device "virtio-9p-pci,fsdev=m$n,mount_tag=m$n")
    n=$((n + 1))
done
[ $n -gt 0 ] && args+=(-fw_cfg "name=opt/skillvm/mounts,file=$dir/mounts")
[ -n "$counting" ] && args+=(-icount 'shift=0,sleep=off')
loglevel=quiet
[ -n "$console" ] && loglevel=loglevel=7

setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config -display none \
    -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny \
    -no-reboot -machine pc,usb=off,vmport=off -accel tcg,tb-size=256 -cpu EPYC,-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,-nrip-save,-xsavec -smp 1 \
    -m "$memory" -kernel "$share/softhost/vmlinuz" -initrd "$share/softhost/initrd.img" \
    -append "console=ttyS0 $loglevel panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on audit=0" \
    -serial "file:$dir/console" -device virtio-rng-pci -rtc base=utc \
    -drive "file=$share/softhost/root.erofs,format=raw,if=virtio,readonly=on" \
    -drive "file=$share/softhost/payload.erofs,format=raw,if=virtio,readonly=on" \
    -fw_cfg "name=opt/skillvm/command,file=$dir/command" -device virtio-serial-pci \
    -chardev file,id=o,path=/proc/self/fd/8 -device virtserialport,chardev=o,name=out \
    -chardev file,id=e,path=/proc/self/fd/9 -device virtserialport,chardev=e,name=err \
    -chardev "file,id=s,path=$dir/status" -device virtserialport,chardev=s,name=status \
    -chardev "pipe,id=t,path=$dir/tick" -device virtserialport,chardev=t,name=tick \
    "${args[@]+"${args[@]}"}" </dev/null >"$dir/qemu" 2>&1 &
qemu=$!

late=''
end=$((SECONDS + limit))
while kill -0 $qemu 2>/dev/null; do
    if [ $SECONDS -ge $end ]; then
        late=1
        kill -9 $qemu
        break
    fi
    sleep 0.1
done
wait $qemu 2>/dev/null
qemu=''
kill $ticker
exec 8>&- 9>&-
# shellcheck disable=SC2086
wait $readers
readers=''
[ -n "$console" ] && cat "$dir/console" >&2
if [ -n "$late" ]; then
    echo "run.sh: no end after $limit s, killed. Last console lines:" >&2
    tail -n 15 "$dir/console" >&2
    exit 124
fi
[ -s "$dir/status" ] && exit "$(cat "$dir/status")"
echo 'run.sh: the host ended without a status. Its last words:' >&2
cat "$dir/qemu" >&2
tail -n 40 "$dir/console" >&2
exit 125
