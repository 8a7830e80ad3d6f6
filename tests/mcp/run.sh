#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Drives `skillvm mcp` with the official client library and the official inspector.
#
#   run.sh --build DIR
#
# Their packages come from npm once and stay in the cache, under the digest of their lock file;
# with them there it works without a network. Exit status: 0 passed, 1 failed, 2 wrong usage.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [[ ${1:-} != --build || $# != 2 ]]; then
    sed -n '6p' "$0" | cut -c3- >&2
    exit 2
fi
build=$(cd "$2" && pwd)
if ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null; then
    echo "run.sh: node 18 or newer is needed" >&2
    exit 1
fi

digest=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum | cut -c1-32)
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/node
packages=$cache/$digest
if [[ ! -d $packages ]]; then
    mkdir -p "$cache"
    fresh=$(mktemp -d "$cache/new.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    cp "$here/package.json" "$here/package-lock.json" "$fresh"
    (cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund)
    # Somebody else may have been faster.
    mv -T "$fresh" "$packages" 2>/dev/null || [[ -d $packages ]]
fi

# Imports are looked for beside a file, so the tests run beside the packages.
work=$build/mcp-tests
rm -rf "$work"
mkdir -p "$work"
cp "$here"/*.mjs "$here/package.json" "$work"
ln -s "$packages/node_modules" "$work/node_modules"
cd "$work"
export SKILLVM_BUILD=$build SKILLVM_TESTS=$here
unset SKILLVM_SOCKET SKILLVM_DATA SKILLVM_SHARE SKILLVM_SERVER SKILLVM_API_KEY
exec node --test ./*.test.mjs
