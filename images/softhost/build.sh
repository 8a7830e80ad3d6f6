#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the software host and links it into a share directory:
#   images/softhost/build.sh --build DIR --share DIR [--kernel VERSION] [--vmx]
#                            [--packages FILE] [--no-payload]
#
#   --build DIR       the CMake build directory: its bin/ and lib/skillvm go into the payload, unmodified
#   --share DIR       holds vmlinux and python.{erofs,sha256,modules,manifest}, which go into the payload,
#                     and so do other images; gets softhost/{vmlinux,initrd.img,root.erofs,
#                     payload.erofs} as symlinks, and what is in two of them:
#                     {vmlinux,root}.packages
#   --kernel VERSION  also with Debian's other kernel of that version (6.12): gets
#                     softhost/VERSION/{vmlinux,initrd.img}
#   --vmx             also for Bochs, whose processor has VMX: gets softhost/vmx/boot.iso, or
#                     with --kernel softhost/VERSION/vmx/boot.iso (needs isolinux and xorriso)
#   --packages FILE   more packages for the root image, in the form of ./packages
#   --no-payload      only what is made of Debian's packages: nothing has to be built yet
#
# Everything is made from Debian packages of the machine's own apt sources, without root and
# without installing them, and kept under ${XDG_CACHE_HOME:-~/.cache}/skillvm/softhost/: the
# root image, each kernel with its initrd, and the payload, each under the hash of the recipe in
# this folder and the exact package versions.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
usage() {
    echo "usage: build.sh --build DIR --share DIR [--kernel VERSION] [--vmx]" \
        "[--packages FILE] [--no-payload]" >&2
    exit 2
}
build='' share='' version='' vmx='' more='' payload=1
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2-} && shift ;;
    --share) share=${2-} && shift ;;
    --kernel) version=${2-} && shift ;;
    --vmx) vmx=1 ;;
    --packages) more=${2-} && shift ;;
    --no-payload) payload='' ;;
    *) usage ;;
    esac
    [ $# -gt 0 ] || usage
    shift
done
if [ -z "$build" ] || [ -z "$share" ]; then usage; fi

fail() {
    echo "softhost: $*" >&2
    exit 1
}
PATH=$PATH:/usr/sbin:/sbin
for tool in apt-get dpkg-deb mkfs.erofs modinfo cpio xz zstd readelf sha256sum ${vmx:+xorriso}; do
    command -v "$tool" >/dev/null || fail "$tool is not installed" \
        "(Debian: apt dpkg erofs-utils kmod cpio xz-utils zstd binutils coreutils${vmx:+ xorriso})"
done

cache=${XDG_CACHE_HOME:-$HOME/.cache}/skillvm/softhost
mkdir -p "$cache/debs"
work=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# apt as if nothing were installed, so that it names the whole closure.
apt() {
    apt-get -qq -o Dir::State::status="$work/status" -o APT::Install-Recommends=false \
        -o Dir::Cache::archives="$work/archives" -o APT::Sandbox::User= "$@"
}
names() {
    sed 's/#.*//; s/^ *//' "$1" | awk 'NF { print $1 }'
}
digest() { # of standard input and the recipe's files
    { cat; cd "$here" && find "$@" -type f | sort | xargs sha256sum; } | sha256sum | cut -c1-32
}
uuid_of() {
    echo "$1" | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\).*/\1-\2-\3-\4-\5/'
}
# Bochs wants disks of whole cylinders: 16 heads of 63 sectors.
make_erofs() { # image folder hash
    mkfs.erofs --quiet -T0 -U "$(uuid_of "$3")" --all-root "$1" "$2" >/dev/null
    truncate -s %516096 "$1"
}
publish() { # folder target
    mv "$1" "$2.new.$$"
    mv -T "$2.new.$$" "$2" 2>/dev/null || rm -rf "$2.new.$$"
}

# The files of packages, one a line: name_version_arch.deb, with the version's colons as %3a.
mkdir -p "$work/archives/partial"
: >"$work/status"
# shellcheck disable=SC2046
apt --print-uris -y install $(names "$here/packages") $([ -z "$more" ] || names "$more") \
    >"$work/uris" ||
    fail 'apt-get cannot resolve the packages; run apt-get update first'
awk '{ print $2 }' "$work/uris" | sort >"$work/debs"

kernel_deb() { # version, or nothing for the distribution's own
    meta=linux-image-${1:+$1-}amd64
    package=$(apt-cache depends "$meta" | awk '/Depends: linux-image-/ { print $2; exit }')
    [ -n "$package" ] || fail "no $meta in the package lists; run apt-get update first"
    apt --print-uris download "$package" | awk '{ print $2 }' >"$work/kernel$1"
    [ -s "$work/kernel$1" ] || fail "$package cannot be downloaded; run apt-get update first"
}

fetch() { # lists of files
    specs=''
    mkdir -p "$work/get"
    cat "$@" >"$work/wanted"
    while read -r deb; do
        [ -s "$cache/debs/$deb" ] || specs="$specs $(echo "$deb" |
            sed 's/%3a/:/g; s/\.deb$//; s/^\([^_]*\)_\(.*\)_\([^_]*\)$/\1=\2/')"
    done <"$work/wanted"
    [ -n "$specs" ] || return 0
    echo "softhost: fetching $(echo "$specs" | wc -w) Debian packages"
    # shellcheck disable=SC2086
    (cd "$work/get" && apt download $specs) || fail 'a package cannot be downloaded'
    mv "$work"/get/*.deb "$cache/debs/"
}

# The root image: what Debian's packages hold, and root/ over it.
make_root() { # hash
    fetch "$work/debs"
    echo 'softhost: root image'
    root=$work/root
    mkdir -p "$work/root.out" "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64"
    for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
    while read -r deb; do
        dpkg-deb --fsys-tarfile "$cache/debs/$deb" |
            tar -x -C "$root" --keep-directory-symlink --no-same-owner --no-same-permissions
    done <"$work/debs"
    rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" \
        "$root/usr/share/info" "$root/usr/share/lintian" "${root:?}/var"
    python=$(basename "$root"/usr/bin/python3.[0-9]*)
    PYTHONHOME=$root/usr \
        "$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" \
        "$root/usr/bin/$python" -I -B -m compileall -q -f -s "$root" -p / \
        --invalidation-mode unchecked-hash "$root/usr/lib/$python" ||
        fail 'compiling the standard library failed'
    for d in dev proc sys run tmp data mnt opt/skillvm root var/lib var/tmp; do
        mkdir -p "$root/$d"
    done
    cp -r "$here/root/." "$root/"
    rm -f "$root/usr/sbin/init" "$root/etc/ld.so.cache"
    ln -s ../bin/busybox "$root/usr/sbin/init"
    for applet in $("$root/usr/bin/busybox" --list); do
        [ -e "$root/usr/bin/$applet" ] || [ -e "$root/usr/sbin/$applet" ] ||
            ln -s busybox "$root/usr/bin/$applet"
    done
    [ -e "$root/usr/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
    ln -s /run/ld.so.cache "$root/etc/ld.so.cache"
    chmod -R u+rwX,go+rX,go-w "$root"
    # Unpacked without root they have lost it.
    chmod u+s "$root/usr/bin/newuidmap" "$root/usr/bin/newgidmap"
    make_erofs "$work/root.out/root.erofs" "$root" "$1"
    cp "$work/debs" "$work/root.out/root.packages"
    publish "$work/root.out" "$cache/root-$1"
}

# A module after everything it depends on, each once. What the kernel has built in needs none.
add_module() { # name
    pattern=/$(echo "$1" | sed 's/[-_]/[-_]/g')'\.ko'
    file=$(grep -E "$pattern(\.xz)?\$" "$work/ko" | head -n 1)
    if [ -z "$file" ]; then
        grep -qE "$pattern\$" "$modules/modules.builtin" || fail "the kernel has no module $1"
        return 0
    fi
    name=$(basename "$file" .xz)
    grep -qxF "$name" "$ird/modules/order" && return 0
    for dep in $(modinfo -F depends "$file" | tr ',' ' '); do
        (add_module "$dep") || exit
    done
    case $file in
    *.xz) xz -dc "$file" >"$ird/modules/$name" ;;
    *) cp "$file" "$ird/modules/$name" ;;
    esac
    # Its signature goes too, and the processor time to check it; as do symbols for none but kallsyms.
    strip --strip-unneeded "$ird/modules/$name"
    echo "$name" >>"$ird/modules/order"
}

make_iso() { # folder of vmlinuz and initrd.img, which boot.iso replaces
    for f in /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32; do
        [ -e "$f" ] || fail "$f is missing (Debian: isolinux syslinux-common)"
        cp "$f" "$1/"
    done
    cp "$here/isolinux.cfg" "$1/"
    xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot \
        -boot-load-size 4 -boot-info-table "$1"
    rm "$1"/*
    mv "$work/boot.iso" "$1/"
}

# The ELF file in a bzImage (Documentation/arch/x86/boot.rst: setup_sects, payload_offset and
# payload_length, whose last four bytes are a size). An emulated processor takes five seconds to
# unpack it, and QEMU begins it by its PVH entry.
unpack_kernel() { # bzImage elf
    at=$((($(od -An -t u1 -j 497 -N 1 "$1") + 1) * 512 + $(od -An -t u4 -j 584 -N 4 "$1")))
    len=$(($(od -An -t u4 -j 588 -N 4 "$1") - 4))
    tail -c "+$((at + 1))" "$1" | head -c "$len" >"$work/payload"
    case $(od -An -t x4 -N 4 "$work/payload" | tr -d ' ') in
    587a37fd) xz -dc <"$work/payload" >"$2" ;;
    fd2fb528) zstd -qdc <"$work/payload" >"$2" ;;
    *) fail "$(basename "$1") is packed in a way that is not known here" ;;
    esac
    readelf -n "$2" 2>/dev/null | grep -q '^  Xen .*(0x00000012)' ||
        fail "$(basename "$1") has no PVH entry"
}

# A kernel and its initrd; for Bochs both in an image of a CD.
make_kernel() { # hash deb list-of-modules
    fetch "$work/debs" "$2"
    echo "softhost: kernel and initrd, $(cat "$2")"
    out=$work/kernel.out
    ird=$work/ird
    rm -rf "$work/k" "$ird" "$out"
    mkdir -p "$work/k" "$out" "$ird/bin" "$ird/modules" "$ird/dev" "$ird/proc" "$ird/sys" \
        "$ird/root"
    dpkg-deb -x "$cache/debs/$(cat "$2")" "$work/k"
    modules=$(echo "$work"/k/lib/modules/*)
    packed=$work/k/boot/vmlinuz-$(basename "$modules")
    if [ "$3" = "$here/modules-vmx" ]; then
        cp "$packed" "$out/vmlinuz"
    else
        unpack_kernel "$packed" "$out/vmlinux"
    fi
    find "$modules" -name '*.ko' -o -name '*.ko.xz' >"$work/ko"
    : >"$ird/modules/order"
    for module in $(names "$3"); do add_module "$module"; done
    dpkg-deb --fsys-tarfile "$cache/debs/$(grep '^busybox-static_' "$work/debs")" |
        tar -x -C "$ird" --wildcards '*bin/busybox' --transform='s|.*/||' --xform='s|^|bin/|'
    cp "$here/initrd-init" "$ird/init"
    chmod 755 "$ird/init"
    find "$ird" -exec touch -h -d @0 {} +
    (cd "$ird" && find . | sort | cpio -o -H newc -R 0:0 --reproducible --quiet) |
        zstd -q -10 -o "$out/initrd.img"
    if [ "$3" = "$here/modules-vmx" ]; then make_iso "$out"; fi
    cp "$2" "$out/vmlinux.packages"
    publish "$out" "$cache/kernel-$1"
}

# The same file, which stays when another build has the cache drop it.
keep() { # from to
    ln -fL "$1" "$2" 2>/dev/null || cp "$1" "$2"
}

link() { # folder name…: of the cache, into the share directory
    from=$1 into=$share/softhost/$2
    shift 2
    touch "$from"
    mkdir -p "$into"
    for f in "$@"; do keep "$from/$f" "$into/$f"; done
}

add_kernel() { # version vmx
    kernel_deb "$1"
    list=$here/modules${2:+-vmx}
    hash=$(cat "$work/kernel$1" "$work/debs" |
        digest build.sh initrd-init "$(basename "$list")" ${2:+isolinux.cfg})
    [ -e "$cache/kernel-$hash" ] || make_kernel "$hash" "$work/kernel$1" "$list"
    if [ -n "$2" ]; then
        link "$cache/kernel-$hash" "${1:+$1/}vmx" boot.iso
    else
        link "$cache/kernel-$hash" "$1" vmlinux vmlinux.packages initrd.img
    fi
}

# The payload: the build's programs and what they run, as they are.
make_payload() {
    programs=''
    for p in skillvm skillvmd skillvm-jail skillvm-vmm; do
        [ -x "$build/bin/$p" ] || fail "$build/bin/$p is missing; build first"
        programs="$programs $build/bin/$p"
    done
    cluster=$build/lib/skillvm/skillvm-cluster.so
    [ -e "$cluster" ] || fail "$cluster is missing; build first"
    for f in vmlinux vmlinux.sha256 python.erofs python.sha256 python.modules python.manifest; do
        [ -e "$share/$f" ] || fail "$share/$f is missing; build the kernel and the images first"
    done
    # And what other images there are, by links of our own: another build may change those of the
    # share directory.
    mkdir "$work/guest"
    for f in "$share"/vmlinux "$share"/*.erofs "$share"/*.modules "$share"/*.manifest \
        "$share"/*.sha256; do
        [ ! -e "$f" ] || keep "$f" "$work/guest/${f##*/}"
    done
    # shellcheck disable=SC2086
    hash=$({ cat $programs "$cluster" && cd "$work/guest" && echo ./* && cat ./*; } | digest build.sh)
    if [ ! -e "$cache/payload-$hash" ]; then
        mkdir -p "$work/p/bin" "$work/p/lib/skillvm" "$work/p/share/skillvm" "$work/payload.out"
        # shellcheck disable=SC2086
        cp -L $programs "$work/p/bin/"
        cp -L "$cluster" "$work/p/lib/skillvm/"
        cp -L "$work"/guest/* "$work/p/share/skillvm/"
        make_erofs "$work/payload.out/payload.erofs" "$work/p" "$hash"
        publish "$work/payload.out" "$cache/payload-$hash"
    fi
    link "$cache/payload-$hash" '' payload.erofs
}

hash=$(digest build.sh packages root <"$work/debs")
[ -e "$cache/root-$hash" ] || make_root "$hash"
link "$cache/root-$hash" '' root.erofs root.packages
add_kernel '' ''
if [ -n "$version" ]; then add_kernel "$version" ''; fi
if [ -n "$vmx" ]; then add_kernel "$version" 1; fi
if [ -n "$payload" ]; then make_payload; fi

# Older ones are of builds that are gone.
prune() { # pattern how-many-stay
    find "$cache" -maxdepth 1 -type d -name "$1" -printf '%T@ %p\n' | sort -rn |
        tail -n "+$(($2 + 1))" | cut -d' ' -f2- | xargs -r rm -rf
}
find "$cache" -maxdepth 1 -name 'tmp.*' -mmin +180 -exec rm -rf {} +
prune 'payload-*' 6
prune 'root-*' 3
prune 'kernel-*' 8
