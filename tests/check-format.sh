#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every C source, the new ones too, is as clang-format has it (./dev fmt).
set -eu
cd "$(dirname "$0")/.."
git ls-files -co --exclude-standard -- '*.c' '*.h' | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
done | xargs -r clang-format --dry-run -Werror
