#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# images_brings.sh NINJA BUILD: an image that is there keeps its manifest, also when its build folder is
# cleaned, and one that is not has what its recipe says it brings.
set -euo pipefail
cd "$(dirname "$0")/../.."
ninja=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
cache=$XDG_CACHE_HOME/skillvm/image/0123 share=$work/share

fail() {
    echo "images_brings: $1" >&2
    exit 1
}

run() {
    images/brings.sh --tool "$build/bin/image-tree" --share "$share" "$work/own.yaml"
}

has() { # what it has
    [[ $(<"$share/own.manifest") == "$1" ]] || fail "own.manifest is: $(<"$share/own.manifest")"
}

mkdir -p "$cache" "$share"
printf 'name: own\nsuite: bookworm\npackages: [bash]\nbrings: [program bash, module a]\n' >"$work/own.yaml"
run
has $'module a\nprogram bash'
echo 'module built' >"$cache/own.manifest"
echo image >"$cache/own.erofs"
for file in own.manifest own.erofs; do
    ln -f "$cache/$file" "$share/$file"
done
run
has 'module built'
rm "$share/own.manifest"
run
has 'module built'
# Of another image than the cache's nothing is known here.
rm "$share/own.manifest"
echo other >"$work/other"
mv "$work/other" "$share/own.erofs"
run
[[ ! -e $share/own.manifest ]] || fail "a manifest that is not the image's"
rm -r "$XDG_CACHE_HOME"
run

cleaned=$("$ninja" -C "$build" -n -v -t clean)
[[ $cleaned == *bin/image-tree* ]] || fail "nothing is cleaned: $cleaned"
for part in manifest modules packages origin sha256 erofs; do
    ! grep -E "share/skillvm/[a-z]+\.$part" <<<"$cleaned" || fail "of an image that is cleaned"
done
