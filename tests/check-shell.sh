#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every shell script, the new ones too, is clean by shellcheck.
set -eu
cd "$(dirname "$0")/.."
{
    git ls-files -co --exclude-standard -- '*.sh' '*.bash' dev .ci/run
} | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
done | xargs -r shellcheck -x
