#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every C source that a build compiles, with clang-tidy, which has clang's warnings too; not again while
# neither the file nor a header that it includes nor a rule has changed:
#   check-tidy.sh [--deep] FOLDER…    of builds, with the flags of the first that has it; as deep as clang goes by
#                                     itself, which takes five times as long
set -euo pipefail
deep=''
[ "$1" != --deep ] || { deep=1 && shift; }
mapfile -t folders < <(realpath "$@")
cd "$(dirname "$0")/.."
export config cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/tidy
mkdir -p "$cache"

# A line for each source: its build's folder, its path, and those of the headers of ours that its build read,
# from that folder as ninja tells them there (or whole, where no ccache made them relative). Only what
# the build compiles: other sources have no flags to check them with.
sources() {
    for folder in "${folders[@]}"; do
        echo "folder $folder"
        ninja -C "$folder" -t deps
    done | awk -v root="$PWD/" '
        function finish() {
            if (files ~ /^ \.\.\/[^ ]*\.c( |$)/ && !seen[source]++) print folder files
            files = ""
        }
        $1 == "folder" { finish(); folder = $2; next }
        /^[^ ]/ { finish() }
        /^    / {
            path = substr($0, 5)
            if (index(path, root) == 1) path = "../" substr(path, length(root) + 1)
            if (path ~ "^/usr/") next
            if (files == "") source = path
            files = files " " path
        }
        END { finish() }'
}

tidy_one() { # folder source header…
    local key
    cd "$1" && shift
    key=$(cat "$rules" "$config" "$@" | sha256sum | cut -c 1-32)
    [ ! -e "$cache/$key" ] || return 0
    # shellcheck disable=SC2086 # variables with their values, without spaces
    env $huge clang-tidy --quiet -p . --config-file="$config" "$1" 2>&1 || return 1
    touch "$cache/$key"
}
export -f tidy_one

rules=$(mktemp) config=$(mktemp) huge=$(cmake/hugepages.sh)
export rules huge
trap 'rm -f "$rules" "$config"' EXIT
clang-tidy --version >"$rules"
if [ "$deep" ]; then
    sed '/^ExtraArgs:/d' .clang-tidy
else
    cat .clang-tidy
fi >"$config"
found=$(sources)
[ -n "$found" ] || {
    echo "check-tidy.sh: ${folders[*]}: no build by ninja" >&2
    exit 1
}
# shellcheck disable=SC2016 # the inner shell expands them
xargs -r -P "$(nproc)" -L 1 bash -c 'tidy_one "$@"' tidy <<<"$found"
