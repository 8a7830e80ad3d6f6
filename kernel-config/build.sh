#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the guest kernel from Debian's linux-source package and the *.config fragments beside
# this script, and prints the path of the stripped vmlinux, with its checksum beside it. What was built before from the same
# inputs is printed at once. Never touches anything outside the cache and a directory in it that
# it removes again.
#
#   kernel-config/build.sh [--jobs N] [--source TARBALL] [--fragment FILE] [--config-only]
#
#   --fragment FILE one more fragment, which counts more than the others
#   --config-only   print the finished .config on standard output instead of building
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/kernel
source_tar=/usr/src/linux-source-6.12.tar.xz
source_package=linux-source-6.12
jobs=$(nproc)
config_only=no
fragment=''

die() {
    echo "kernel: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --jobs) jobs=${2:?} && shift ;;
    --source) source_tar=${2:?} && source_package='' && shift ;;
    --fragment) fragment=$(readlink -f "${2:?}") && shift ;;
    --config-only) config_only=yes ;;
    *) die "unknown argument $1 (--jobs N, --source TARBALL, --fragment FILE, --config-only)" ;;
    esac
    shift
done
[ -r "$source_tar" ] || die "$source_tar is missing: apt-get install linux-source-6.12"

# The identity of the sources: the package's version, or the digest of a tarball given by hand.
if [ -n "$source_package" ]; then
    source_id=$(dpkg-query -W -f '${Package}_${Version}' "$source_package")
else
    source_id=$(sha256sum <"$source_tar")
fi
key=$({
    echo "$source_id"
    gcc --version | head -n 1
    ld --version | head -n 1
    cd "$here" && sha256sum -- *.config build.sh cc.sh common-headers.h
    [ -z "$fragment" ] || sha256sum <"$fragment"
} | sha256sum | cut -c 1-32)
out=$cache/$key/vmlinux

if [ "$config_only" = no ] && [ -s "$out" ]; then
    echo "$out"
    exit 0
fi

# One build at a time: a second one waits and then finds the first one's result.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ "$config_only" = no ] && [ -s "$out" ]; then
    echo "$out"
    exit 0
fi

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Leave out what a vmlinux of ours never reads: most of the files to write and to remove again.
echo "kernel: unpacking $source_id" >&2
tar -C "$work" --strip-components=1 -xf "$source_tar" \
    --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*' --exclude='*/tools/perf/*.[ch]' \
    --exclude='*/arch/[!x]*/*.[chS]' --exclude='*/arch/*/boot/dts/*' --exclude='*/sound/*.[ch]' \
    --exclude='*/drivers/gpu/drm/*/*.[ch]' --exclude='*/drivers/net/*/*.[ch]' \
    --exclude='*/drivers/media/*.[ch]' --exclude='*/drivers/staging/*.[ch]' \
    --exclude='*/drivers/clk/*.[ch]' --exclude='*/drivers/iio/*.[ch]' \
    --exclude='*/drivers/scsi/*.[ch]' --exclude='*/drivers/usb/*.[ch]'
cd "$work"

# Every time, name and path that would tell one build from another.
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
export KBUILD_BUILD_USER=skillvm KBUILD_BUILD_HOST=skillvm KBUILD_BUILD_VERSION=1
export LC_ALL=C TZ=UTC
unset MAKEFLAGS CROSS_COMPILE ARCH KCFLAGS LOCALVERSION

run() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        die "failed: $*"
    }
}

huge=$("$here/../cmake/hugepages.sh")
# shellcheck disable=SC2163,SC2086 # variables with their values, without spaces
[ -z "$huge" ] || export $huge

# What `make tinyconfig` and scripts/kconfig/merge_config.sh make, in two passes for four.
cc=$here/cc.sh
cat kernel/configs/tiny-base.config kernel/configs/tiny.config arch/x86/configs/tiny.config >.tiny
run make -j "$jobs" CC="$cc" KCONFIG_ALLCONFIG=.tiny allnoconfig
cat "$here"/*.config ${fragment:+"$fragment"} >>.config
run make -j "$jobs" CC="$cc" olddefconfig

# Kconfig drops silently what a dependency forbids; a fragment that asks in vain is an error.
lost=0
last=no
overridden=''
[ -z "$fragment" ] ||
    overridden=$(sed -nE 's/^(# )?(CONFIG_[A-Z0-9_]+)[= ].*/\2/p' "$fragment" | tr '\n' ' ')
for asked in "$here"/*.config ${fragment:+"$fragment"}; do
    name=$(basename "$asked")
    [ "$asked" != "$fragment" ] || last=yes
    while read -r line; do
        option=${line#\# }
        case " $overridden " in *" ${option%%[= ]*} "*) [ "$last" = yes ] || continue ;; esac
        case $line in
        CONFIG_*=*) grep -qxF -- "$line" .config && continue ;;
        '# CONFIG_'*' is not set')
            option=${line#\# }
            grep -q "^${option%% *}=" .config || continue
            ;;
        *) continue ;;
        esac
        echo "kernel: $name: did not stick: $line" >&2
        lost=1
    done <"$asked"
done
[ "$lost" = 0 ] || die "options that did not stick"
if [ "$config_only" = yes ]; then
    cat .config
    exit 0
fi

echo "kernel: compiling with $jobs jobs" >&2
run make -j "$jobs" CC="$cc" fs/ioctl.o
# The common headers, with what that file was compiled with. A kernel that has them otherwise is
# compiled without.
export SKILLVM_HEADERS="$work/.headers"
mkdir "$SKILLVM_HEADERS"
: >"$SKILLVM_HEADERS/common.h"
# shellcheck disable=SC2046 # options without spaces
gcc $(sed -n 's/^savedcmd_[^ ]* := [^ ]* -Wp,[^ ]* //; s/ -DKBUILD_MODFILE.*//p' fs/.ioctl.o.cmd) \
    -x c-header -o "$SKILLVM_HEADERS/common.h.gch" "$here/common-headers.h" >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    echo 'kernel: the common headers do not compile: it takes twice as long without them' >&2
    rm -f "$SKILLVM_HEADERS/common.h.gch"
}
# Compiles what the compiler is to warn of, nothing that the kernel has.
: >lib/test_fortify/Makefile
run make -j "$jobs" CC="$cc" vmlinux
# What the boot stub of a compressed kernel would move it by, for the VMM (vmm/relocations.h).
objcopy --strip-all --add-section .skillvm.relocs=arch/x86/boot/compressed/vmlinux.relocs \
    --set-section-flags .skillvm.relocs=readonly vmlinux "$work/vmlinux.stripped"

mkdir -p "$cache/$key"
cp .config "$cache/$key/config"
cp System.map "$cache/$key/System.map"
mv "$work/vmlinux.stripped" "$cache/$key/vmlinux.new"
chmod 0644 "$cache/$key/vmlinux.new"
# Without it no daemon uses the kernel.
echo "$(sha256sum <"$cache/$key/vmlinux.new" | cut -d ' ' -f 1)  vmlinux" >"$cache/$key/vmlinux.sha256"
mv "$cache/$key/vmlinux.new" "$out"
echo "$out"
