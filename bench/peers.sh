#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Gathers what some peers of a measurement need beside Debian's packages, and prints the folder:
#   bench/peers.sh --share DIR       DIR holds python.erofs
#
#   vmlinux           our guest kernel with what QEMU's microvm needs
#   microsandbox/     microsandbox from npm, by lock file
#   image.tar         our guest image as a docker archive
#   certificates.pem  microsandbox does not start without any
#
# What cannot be had is told and left out: the peer then says so. Kept in
# ${XDG_CACHE_HOME:-~/.cache}/skillvm/bench under the digest of what it was made from.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [ $# != 2 ] || [ "$1" != --share ]; then
    sed -n '5p' "$0" | cut -c5- >&2
    exit 2
fi
image=$(readlink -f "$2/python.erofs")
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/bench
kernel=$("$here/../kernel-config/build.sh" --fragment "$here/microvm.config") ||
    { echo 'peers: no kernel for microvm' >&2 && kernel=''; }
key=$({ cat "$here/peers.sh" "$here/package-lock.json" && echo "$kernel" && sha256sum <"$image"; } |
    sha256sum | cut -c1-32)
out=$cache/$key
if [ -d "$out" ]; then
    echo "$out"
    exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/out" "$work/root"

complete=1
lacking() {
    echo "peers: $*" >&2
    complete=''
}

if [ -n "$kernel" ]; then cp "$kernel" "$work/out/vmlinux"; else complete=''; fi
cp /etc/ssl/certs/ca-certificates.crt "$work/out/certificates.pem" 2>/dev/null ||
    lacking 'no certificates: apt-get install ca-certificates'

cp "$here/package.json" "$here/package-lock.json" "$work"
if (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund >&2); then
    mv "$work"/node_modules/@superradcompany/microsandbox-linux-x64-gnu "$work/out/microsandbox"
    rm -f "$work"/out/microsandbox/*.node
else
    lacking 'npm has no microsandbox'
fi

# A docker archive: a layer, what it is, and a list that names both.
fsck.erofs --extract="$work/root" --force --no-preserve-owner "$image" >&2
tar -C "$work/root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    -cf "$work/layer.tar" .
digest=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/bin"],"Cmd":["python3"]},%s}' \
    "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:$digest\"]}" >"$work/config.json"
printf '[{"Config":"config.json","RepoTags":["skillvm-python:bench"],"Layers":["layer.tar"]}]' \
    >"$work/manifest.json"
tar -C "$work" --mtime=@0 --owner=0 --group=0 -cf "$work/out/image.tar" \
    manifest.json config.json layer.tar

# Kept only when all of it is there: the next time may have more luck.
if [ -n "$complete" ]; then
    mv -T "$work/out" "$out" 2>/dev/null || [ -d "$out" ]
else
    out=$cache/incomplete
    rm -rf "$out"
    mv -T "$work/out" "$out"
fi
find "$cache" -mindepth 1 -maxdepth 1 -type d ! -path "$out" ! -path "$work" -mmin +1440 -exec rm -rf {} +
echo "$out"
