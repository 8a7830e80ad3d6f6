#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every C source that the build compiles, with clang-tidy; not again while neither the file nor a
# header or rule has changed:
#   check-tidy.sh FOLDER     of a build with clang
set -euo pipefail
folder=$(realpath "$1")
cd "$(dirname "$0")/.."
export folder cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/tidy
mkdir -p "$cache"

tidy_one() { # headers-digest file
    local key
    key=$({
        echo "$1"
        cat "$2"
    } | sha256sum | cut -c 1-32)
    [ ! -e "$cache/$key" ] || return 0
    clang-tidy --quiet -p "$folder" "$2" 2>&1 || return 1
    touch "$cache/$key"
}
export -f tidy_one

headers=$({
    clang-tidy --version
    cat .clang-tidy
    find . -name '*.h' -not -path './build*' -print0 | LC_ALL=C sort -z | xargs -0 cat
} | sha256sum)
# shellcheck disable=SC2016 # the inner shell expands them
# Only what the build compiles: other sources have no flags to check them with.
jq -r '.[].file' "$folder/compile_commands.json" | sort -u | grep "^$PWD/.*\.c$" | grep -v "^$folder" |
    xargs -r -P "$(nproc)" -I '{}' bash -c 'tidy_one "$1" "$2"' tidy "$headers" '{}'
