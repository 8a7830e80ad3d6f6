#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages as a user would, in a clean Debian 12, runs a skill and follows docs/tutorial.md
# there, boots it for the service under its systemd, and removes them:
#   package.sh --build DIR     DIR/packages holds them (./dev package)
# Needs root, debootstrap, lintian and QEMU. The last line is the totals. Exit status: 0 all passed, 1 some
# failed, 77 nothing could run.
set -uo pipefail

cd "$(dirname "$0")/.." || exit
[[ ${1:-} == --build && -d ${2:-} ]] || {
    sed -n '6p' "$0" | cut -c3- >&2
    exit 2
}
build=$(realpath "$2")
for tool in debootstrap lintian qemu-system-x86_64; do
    if ! command -v "$tool" >/dev/null || [[ $(id -u) != 0 ]]; then
        echo "skip package: it needs root and $tool"
        echo "0 passed, 0 failed, 1 skipped"
        exit 77
    fi
done

# As the software host's (api/host/qemu.c).
cpu=EPYC,-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,-nrip-save,-xsavec
work=$(mktemp -d)
root=$work/root
finish() {
    umount -R "$root/proc" "$root/dev" "$root/sys" 2>/dev/null
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

passed=0
failed=0
try() { # title command…
    local title=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok $title"
        passed=$((passed + 1))
    else
        echo "FAIL $title: $(tail -n 20 "$work/log")"
        failed=$((failed + 1))
    fi
}

inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# The machine's own source of packages.
clean_debian() {
    # shellcheck disable=SC2016 # apt fills it in
    debootstrap --variant=minbase bookworm "$root" \
        "$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)" &&
        cp -r /etc/apt/. "$root/etc/apt/" && cp /etc/resolv.conf "$root/etc/" &&
        mount --bind /dev "$root/dev" && mount --bind /sys "$root/sys" &&
        mount -t proc proc "$root/proc" && mkdir "$root/packages" &&
        cp "$build"/packages/*.deb "$root/packages/" && cp -r examples/word-counter "$root/root/" &&
        inside apt-get -qq update
}

installs() { # pattern…
    inside sh -c "apt-get -qq -y --no-install-recommends install ${*/#//packages/}"
}

runs_a_skill() {
    inside skillvm run /root/word-counter --input '{"text": "to be or not to be"}' --json \
        >"$work/result" && cat "$work/result" &&
        grep -Eq '"status": ?"success"' "$work/result" && grep -Eq '"words": ?6' "$work/result"
}

# In the project's files as they came, as docs/tutorial.md says.
# shellcheck disable=SC2016 # the inner shell runs it
follows_the_tutorial() {
    mkdir "$root/root/skillvm" && git archive HEAD | tar -C "$root/root/skillvm" -x &&
        inside apt-get -qq -y --no-install-recommends install curl jq python3 &&
        inside bash -c 'cd /root/skillvm && eval "$(./dev shell-env)" && tests/mcp/tutorial.py . --times' &&
        inside skillvm down
}

# Each document is whole, and has the packages of the lists that the builders left.
names_what_it_holds() {
    python3 - "$root/usr/share/doc" "$build/share/skillvm" <<'END'
import json, pathlib, sys
docs, share = map(pathlib.Path, sys.argv[1:])
for name, lists in (("skillvm", ["vmlinux", "python"]),
                    ("skillvm-softhost", ["softhost/vmlinux", "softhost/root"])):
    document = json.loads((docs / name / f"{name}.spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3", document["spdxVersion"]
    ids = {p["SPDXID"] for p in document["packages"]} | {document["SPDXID"]}
    assert len(ids) == len(document["packages"]) + 1, "an id twice"
    for r in document["relationships"]:
        assert {r["spdxElementId"], r["relatedSpdxElement"]} <= ids, r
    held = {(p["name"], p["versionInfo"]) for p in document["packages"]}
    for line in "".join((share / f"{x}.packages").read_text() for x in lists).split("\n"):
        if line:
            package, version, _ = line.split()[0].split("_")
            assert (package, version.replace("%3a", ":")) in held, line
    print(name, len(held))
END
}

builds_a_program() {
    # shellcheck disable=SC2016 # the inner shell runs it
    inside apt-get -qq -y --no-install-recommends install gcc libc6-dev pkg-config &&
        printf '#include <skillvm.h>\n#include <stdio.h>\nint main(void) { puts(skillvm_version()); }\n' \
            >"$root/root/p.c" &&
        inside sh -c 'cd /root && gcc p.c $(pkg-config --cflags --libs skillvm) -o p && ./p'
}

# A line each of tests/service-inside.sh, in an emulated machine with a processor that has SVM, of
# which this Debian is the disk.
boots() {
    local unit=$root/etc/systemd/system/try.service
    inside apt-get -qq -y --no-install-recommends install systemd-sysv udev procps curl \
        initramfs-tools linux-image-amd64 && inside apt-get clean &&
        cp tests/service-inside.sh "$root/root/" &&
        printf '[Unit]\nWants=multi-user.target\nAfter=multi-user.target\n[Service]\nType=oneshot\n%s\n' \
            'ExecStart=/root/service-inside.sh /root/word-counter' 'StandardOutput=file:/dev/ttyS1' \
            'ExecStopPost=systemctl poweroff -ff' >"$unit" &&
        umount "$root/proc" "$root/dev" "$root/sys" &&
        mke2fs -q -t ext4 -d "$root" "$work/disk" 4G &&
        timeout 1200 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
            -machine pc,usb=off,vmport=off -accel tcg,tb-size=256 -cpu "$cpu" -smp 1 -m 1536 \
            -kernel "$root"/boot/vmlinuz-* -initrd "$root"/boot/initrd.img-* -device virtio-rng-pci \
            -drive "file=$work/disk,if=virtio,format=raw,cache=unsafe" \
            -serial "file:$work/console" -serial "file:$work/service" \
            -append "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on audit=0 systemd.unit=try.service"
    tail -n 20 "$work/console"
    grep -q '^end' "$work/service"
}

count_service() {
    tr -d '\r' <"$work/service" | grep -E '^(ok|FAIL) '
    passed=$((passed + $(grep -c '^ok ' "$work/service")))
    failed=$((failed + $(grep -c '^FAIL ' "$work/service")))
}

goes() {
    inside apt-get -qq -y purge skillvm skillvm-softhost skillvm-dev libskillvm0 &&
        ! inside sh -c 'ls /usr/bin/skillvm* /usr/share/skillvm /etc/skillvm 2>/dev/null | grep .'
}

try lintian lintian --fail-on error,warning --allow-root "$build"/packages/*.deb
try clean_debian clean_debian
if ((failed == 0)); then
    try installs installs 'skillvm_*.deb' 'skillvm-softhost_*.deb'
    try knows_its_version inside skillvm version
    try names_what_it_holds names_what_it_holds
    try runs_a_skill runs_a_skill
    try follows_the_tutorial follows_the_tutorial
    grep '^ *[0-9.]* s  ' "$work/log" # what each step took
    try installs_dev installs 'libskillvm0_*.deb' 'skillvm-dev_*.deb'
    try builds_a_program builds_a_program
    try boots boots
    count_service
    mount -t proc proc "$root/proc"
    try goes goes
fi
echo "$passed passed, $failed failed"
((failed == 0))
