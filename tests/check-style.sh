#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the formatter does not see: every source names its licence, stays readable in length,
# speaks of no particular machine, and leaves nothing half done.

set -euo pipefail
cd "$(dirname "$0")/.."

LINES_MAX=600
failed=0
complain() {
    printf '%s\n' "$1" >&2
    failed=1
}

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files | while read -r f; do [[ -f $f ]] && echo "$f"; done)
else
    mapfile -t files < <(find . -path './build*' -prune -o -type f -printf '%P\n')
fi

# An empty file or one with a NUL in it is not text; grep lists what has no line of text.
declare -A binary=()
while IFS= read -r file; do
    [[ ! -s $file ]] || binary[$file]=1
done < <(printf '%s\0' "${files[@]}" | xargs -0 grep -LI .)

sources=()
texts=()
for file in "${files[@]}"; do
    case $file in
    tests/fuzz/corpus/*) continue ;;
    LICENSE) continue ;;
    esac
    if [[ -n ${binary[$file]:-} ]]; then
        complain "$file: a binary file is in the tree"
        continue
    fi
    texts+=("$file")
    case $file in
    # Skills and scripts that are run as they are: what a first line does is part of the test.
    examples/* | tests/skills/* | tests/hostile/skills/* | bench/skills/*) ;;
    tests/unit/guest_zygote/*) ;;
    *.c | *.h | *.S | *.py | *.js | *.sh | *.cmake | *CMakeLists.txt | *.config | *.yaml | *.yml | dev | .ci/run)
        [[ -s $file ]] || complain "$file: an empty source"
        sources+=("$file")
        ;;
    esac
done

while IFS= read -r hit; do
    complain "$hit"
done < <(printf '%s\0' "${sources[@]}" | xargs -0 awk -v most=$LINES_MAX '
    function finish() {
        if (!licensed) print file ": no SPDX line in its first three lines"
        if (lines > most && file ~ /(\.([chS]|py|js|sh)|^dev)$/)
            print file ": " lines " lines, the limit is " most
    }
    FNR == 1 { if (file) finish(); file = FILENAME; licensed = 0 }
    FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { licensed = 1 }
    { lines = FNR }
    END { finish() }')

report() { # message, then grep arguments
    local message=$1 hit
    shift
    while IFS= read -r hit; do
        complain "$hit: $message"
    done < <(grep -nE "$@" "${texts[@]}" /dev/null | grep -v '^tests/check-style.sh:' | cut -c1-160)
}

report 'an absolute path of one machine' '(^|[^[:alnum:]_.])/(work|home/[a-z]+|tmp/b-[a-z0-9]+)/'
report 'unfinished work' '\b(TODO|FIXME|XXX)\b'
report 'a tab or a blank at the end of a line' --include='*.[ch]' '[[:blank:]]$'
report 'a merge conflict' '^(<<<<<<<|>>>>>>>) '

# An error leaves a function where it happens, and no later step asks whether the ones before it
# went well (CONTRIBUTING.md, "Errors").
while IFS= read -r hit; do
    complain "$hit: a step that runs if the one before it did not fail: return early instead"
done < <(printf '%s\n' "${sources[@]}" |
    grep -E '^(api|base|guest-init|images|vmm)/.*\.[ch]$' |
    xargs -r awk '
        FNR == 1 { guard = 0 }
        (guard && /^ +(r|result|e|error) = /) ||
        /^ +(r = r|result = result) (<|==|>=) 0 \?/ { print FILENAME ":" FNR }
        { guard = /^ +(\} else )?if \(((r|result|e|error) (==|>=) 0|!(r|result))\)( \{)?$/ }')

((failed)) && exit 1
echo "${#texts[@]} files checked, ${#sources[@]} of them sources"
