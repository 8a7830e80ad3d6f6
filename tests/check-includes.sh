#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails on an #include that the tables of docs/architecture.md do not have: a row for each folder,
# with the rooms, files and <headers> it may include besides its own, those of base and the C
# library's. KVM's headers are vmm's, and a third party's are for .c files only.

set -euo pipefail
shopt -s extglob
cd "$(dirname "$0")/.."

failed=0
complain() {
    printf '%s:%s: %s\n' "$1" "$2" "$3" >&2
    failed=1
}

# Headers of the C library, the kernel's UAPI and the compiler, as opposed to third parties.
declare -A platform=()
while read -r header; do
    platform[$header]=1
done < <(
    dpkg -L libc6-dev linux-libc-dev 2>/dev/null |
        sed -n -e "s,^/usr/include/$(gcc -print-multiarch)/\(.*\.h\)$,\1,p" \
            -e 's,^/usr/include/\(.*\.h\)$,\1,p'
    (cd "$(gcc -print-file-name=include)" && find . -name '*.h' -printf '%P\n')
)
if [[ -z ${platform[stdio.h]:-} ]]; then
    echo "check-includes: the packages libc6-dev and linux-libc-dev are needed" >&2
    exit 1
fi

# rights[room] is " right right ", rooms by the last part of their names.
declare -A rights=()
# shellcheck disable=SC2016 # Markdown's backquotes
while IFS='|' read -r _ room _ row _; do
    room=${room//[\` ]/}
    row=${row//[\`,–]/ }
    rights[${room%/}]=" ${row//+( )/ } "
done < <(grep -E '^\| `[a-z/-]+/` \|' docs/architecture.md)
if [[ -z ${rights[base]:-} || -z ${rights[api/cli]:-} ]]; then
    echo "check-includes: docs/architecture.md has no tables of folders and rooms" >&2
    exit 1
fi

room_of() { # path: the row of its folder, or of the nearest around it; sets $room
    room=${1%/*}
    while [[ -z ${rights[$room]:-} && $room == */* ]]; do
        room=${room%/*}
    done
}

may() { # right...: whether the row of $room has one of them
    local right
    for right; do
        [[ ${rights[$room]:-} == *" $right "* ]] && return
    done
    return 1
}

check_ours() { # file line header
    local theirs room
    if [[ ! -f $3 ]]; then
        room_of "$1"
        may "$3" || complain "$1" "$2" "\"$3\" is not a file; include with the full path from the root"
        return
    fi
    room_of "$3"
    theirs=$room
    room_of "$1"
    [[ $theirs == "$room" || $theirs == base ]] && return
    [[ $theirs != tests ]] && may anything && return
    may "$3" "${theirs##*/}" || complain "$1" "$2" "$room may not include \"$3\""
}

check_system() { # file line header
    local room right
    room_of "$1"
    if [[ -n ${platform[$3]:-} ]]; then
        case $room:$3 in
        vmm:* | tests:*) ;;
        *:@(linux|asm)/kvm*.h) complain "$1" "$2" "only vmm may include <$3>" ;;
        *:@(linux|asm)/*) may "<${3%%/*}/*>" || complain "$1" "$2" "$room may not include <$3>" ;;
        esac
        return
    fi
    may anything && return
    [[ $1 != *.h ]] ||
        complain "$1" "$2" "a header may not include <$3>: its types stay inside one .c"
    for right in ${rights[$room]:-}; do
        # shellcheck disable=SC2053 # a pattern it is
        [[ "<$3>" == $right ]] && return
    done
    complain "$1" "$2" "$room may not include <$3>"
}

checked=0
set -f
while IFS=: read -r file line text; do
    header=${text#*include}
    header=${header#"${header%%[<\"]*}"}
    case $header in
    \"*\"*) header=${header#\"} && check_ours "$file" "$line" "${header%%\"*}" ;;
    \<*\>*) header=${header#<} && check_system "$file" "$line" "${header%%>*}" ;;
    *) complain "$file" "$line" "an include that is neither \"file\" nor <file>" ;;
    esac
    checked=$((checked + 1))
done < <(find base vmm guest-init api images bench tests -name '*.[chS]' -print0 |
    LC_ALL=C sort -z | xargs -0 grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null)

# The KVM device's interface must not be reached around the headers either.
while IFS=: read -r file line _; do
    complain "$file" "$line" "only vmm may open /dev/kvm"
done < <(find base guest-init api images bench -name '*.[ch]' -print0 |
    xargs -0 grep -nE 'open[a-z0-9]*\([^)]*"/dev/kvm"' /dev/null)

((failed)) && exit 1
echo "$checked includes checked"
