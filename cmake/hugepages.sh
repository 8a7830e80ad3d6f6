#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the variables with which a compiler has its memory in huge pages (hugepages.c), for env or
# export; nothing where that cannot be, which is no error.
#   env $(cmake/hugepages.sh) gcc …
set -eu
source=$(dirname "$0")/hugepages.c
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm
library=$cache/hugepages-$({ cat "$source" && gcc --version; } | sha256sum | cut -c 1-32).so
case $library in *[[:space:]:\;]*) exit 0 ;; esac

if [ ! -s "$library" ]; then
    { mkdir -p "$cache" && new=$(mktemp "$cache/hugepages.XXXXXX"); } 2>/dev/null || exit 0
    trap 'rm -f "$new"' EXIT
    gcc -O2 -shared -fPIC -o "$new" "$source" 2>/dev/null || exit 0
    chmod 0755 "$new"
    mv "$new" "$library"
fi
echo "LD_PRELOAD=$library GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
