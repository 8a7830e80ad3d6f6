#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The compiler of build.sh: most of the time to compile a file of the kernel goes into the headers that
# it shares with others. $SKILLVM_HEADERS is a folder with common.h, which is empty, and common.h.gch,
# which is those headers compiled; gcc takes the first where flags differ. A file that may have them
# has them first; all else, and what fails with them, is compiled as it stands.
for source; do :; done
plain=yes
# What is not of the kernel itself has other flags. And no file that defines what a header may look at;
# the prefix of messages is looked at later (those of headers go without), and nobody traces.
case $source in
arch/x86/boot/* | arch/x86/realmode/* | arch/x86/entry/vdso/*) ;;
*.c)
    [ ! -s "${SKILLVM_HEADERS-}/common.h.gch" ] || plain=$(awk '
        /^[ \t]*#[ \t]*(define|undef|pragma)/ && !/define[ \t]+(pr_fmt|CREATE_TRACE_POINTS)/ { own = 1 }
        /^[ \t]*#[ \t]*include/ && own { print "yes"; exit }' "$source")
    ;;
esac
[ -z "$plain" ] || exec gcc "$@"

# A compiled header is refused where a macro is defined that it names, so the names of the file itself
# come after it, in the place of a header that may be read once and is in it.
with_headers() {
    names=$SKILLVM_HEADERS/$$
    : >"$names"
    left=$#
    while [ "$left" -gt 0 ]; do
        arg=$1
        shift
        left=$((left - 1))
        case $arg in
        -DKBUILD_* | -D__KBUILD_*)
            arg=${arg#-D}
            printf '#define %s %s\n' "${arg%%=*}" "${arg#*=}" >>"$names"
            continue
            ;;
        ./include/linux/compiler-version.h) arg=$names ;;
        esac
        set -- "$@" "$arg"
    done
    gcc -include "$SKILLVM_HEADERS/common.h" "$@"
}
with_headers "$@" || exec gcc "$@"
