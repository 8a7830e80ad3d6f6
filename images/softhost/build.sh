#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the software host and links it into a share directory:
#   images/softhost/build.sh --build DIR --share DIR
#
#   --build DIR  the CMake build directory: its bin/ goes into the payload, unmodified
#   --share DIR  holds vmlinux and python.erofs (they go into the payload too); gets
#                softhost/{vmlinuz,initrd.img,root.erofs,payload.erofs} as symlinks
#
# Everything is made from Debian packages of the machine's own apt sources, without root and
# without installing them, and kept under ${XDG_CACHE_HOME:-~/.cache}/skillvm/softhost/<hash>/,
# where the hash covers the recipe in this folder and the exact package versions.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
build='' share=''
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    --share) share=$2; shift 2 ;;
    *) echo "usage: build.sh --build DIR --share DIR" >&2; exit 2 ;;
    esac
done
if [ -z "$build" ] || [ -z "$share" ]; then
    echo "usage: build.sh --build DIR --share DIR" >&2
    exit 2
fi

fail() {
    echo "softhost: $*" >&2
    exit 1
}
for tool in apt-get dpkg-deb mkfs.erofs modinfo cpio zstd sha256sum; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || fail "$tool is not installed" \
        "(Debian: apt dpkg erofs-utils kmod cpio zstd coreutils)"
done
PATH=$PATH:/usr/sbin:/sbin

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

mkdir -p "$work/archives/partial"
: >"$work/status"
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
[ -n "$kernel" ] || fail 'no linux-image-amd64 in the package lists; run apt-get update first'
# shellcheck disable=SC2046
apt --print-uris -y install $(names "$here/packages") >"$work/uris" ||
    fail 'apt-get cannot resolve the packages; run apt-get update first'
awk '{ print $2 }' "$work/uris" | sort >"$work/debs"
apt --print-uris download "$kernel" | awk '{ print $2 }' >"$work/kernel"
[ -s "$work/kernel" ] || fail "$kernel cannot be downloaded; run apt-get update first"

hash=$({ cat "$work/debs" "$work/kernel"
    cd "$here" && find . -type f ! -name run.sh ! -name README.md | sort | xargs sha256sum
} | sha256sum | cut -c1-32)
base=$cache/$hash

# A package file is name_version_arch.deb, with the version's colons as %3a.
fetch_missing() {
    mkdir -p "$work/get"
    specs=''
    cat "$work/debs" "$work/kernel" >"$work/all"
    while read -r deb; do
        [ -s "$cache/debs/$deb" ] || specs="$specs $(echo "$deb" |
            sed 's/%3a/:/g; s/\.deb$//; s/^\([^_]*\)_\(.*\)_\([^_]*\)$/\1=\2/')"
    done <"$work/all"
    [ -n "$specs" ] || return 0
    echo "softhost: fetching $(echo "$specs" | wc -w) Debian packages"
    # shellcheck disable=SC2086
    (cd "$work/get" && apt download $specs) || fail 'a package cannot be downloaded'
    mv "$work"/get/*.deb "$cache/debs/"
}

make_base() {
    fetch_missing
    root=$work/root
    out=$work/out
    mkdir -p "$root" "$out" "$work/k"

    echo 'softhost: kernel and initrd'
    dpkg-deb -x "$cache/debs/$(cat "$work/kernel")" "$work/k"
    version=$(ls "$work/k/lib/modules")
    cp "$work/k/boot/vmlinuz-$version" "$out/vmlinuz"
    ird=$work/ird
    mkdir -p "$ird/bin" "$ird/modules" "$ird/dev" "$ird/proc" "$ird/sys" "$ird/root"
    find "$work/k/lib/modules" -name '*.ko' >"$work/ko"
    : >"$ird/modules/order"
    names "$here/modules" | while read -r module; do add_module "$module"; done
    dpkg-deb --fsys-tarfile "$cache/debs/$(grep '^busybox-static_' "$work/debs")" |
        tar -x -C "$ird" --wildcards '*bin/busybox' --transform='s|.*/||' --xform='s|^|bin/|'
    cp "$here/initrd-init" "$ird/init"
    chmod 755 "$ird/init"
    find "$ird" -exec touch -h -d @0 {} +
    (cd "$ird" && find . | sort | cpio -o -H newc -R 0:0 --reproducible --quiet) |
        zstd -q -10 -o "$out/initrd.img"

    echo 'softhost: root image'
    mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64"
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
    mkfs.erofs --quiet -T0 -U "$(uuid_of "$hash")" --all-root "$out/root.erofs" "$root" >/dev/null
    mv "$out" "$base.new.$$"
    mv -T "$base.new.$$" "$base" 2>/dev/null || rm -rf "$base.new.$$"
}

# A module after everything it depends on, each once.
add_module() {
    file=$(grep -E "/$(echo "$1" | sed 's/[-_]/[-_]/g')\.ko$" "$work/ko" | head -n 1)
    [ -n "$file" ] || return 0
    name=$(basename "$file")
    grep -qxF "$name" "$ird/modules/order" && return 0
    for dep in $(modinfo -F depends "$file" | tr ',' ' '); do
        (add_module "$dep")
    done
    cp "$file" "$ird/modules/$name"
    echo "$name" >>"$ird/modules/order"
}

uuid_of() {
    echo "$1" | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\).*/\1-\2-\3-\4-\5/'
}

[ -e "$base/root.erofs" ] || make_base

# The payload: the build's programs and what they run, as they are.
programs=''
for p in skillvm skillvmd skillvm-vmm; do
    [ -x "$build/bin/$p" ] || fail "$build/bin/$p is missing; build first"
    programs="$programs $build/bin/$p"
done
for f in vmlinux python.erofs; do
    [ -e "$share/$f" ] || fail "$share/$f is missing; build the kernel and the images first"
done
# shellcheck disable=SC2086
hash=$(cat $programs "$share/vmlinux" "$share/python.erofs" | sha256sum | cut -c1-32)
payload=$cache/payload-$hash
if [ ! -e "$payload/payload.erofs" ]; then
    mkdir -p "$work/p/bin" "$work/p/share/skillvm" "$work/new"
    # shellcheck disable=SC2086
    cp -L $programs "$work/p/bin/"
    cp -L "$share/vmlinux" "$share/python.erofs" "$work/p/share/skillvm/"
    mkfs.erofs --quiet -T0 -U "$(uuid_of "$hash")" --all-root "$work/new/payload.erofs" "$work/p" \
        >/dev/null
    mv -T "$work/new" "$payload" 2>/dev/null || [ -e "$payload/payload.erofs" ]
fi
touch "$payload" "$base"
# Older ones are of builds that are gone.
prune() {
    find "$cache" -maxdepth 1 -type d -name "$1" -printf '%T@ %p\n' | sort -rn |
        tail -n "+$(($2 + 1))" | cut -d' ' -f2- | xargs -r rm -rf
}
find "$cache" -maxdepth 1 -name 'tmp.*' -mmin +180 -exec rm -rf {} +
prune 'payload-*' 6
prune '????????????????????????????????' 3

mkdir -p "$share/softhost"
for f in vmlinuz initrd.img root.erofs; do ln -sfn "$base/$f" "$share/softhost/$f"; done
ln -sfn "$payload/payload.erofs" "$share/softhost/payload.erofs"
