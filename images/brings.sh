#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tells what images would have that are not built, by what their recipes say they bring: NAME.manifest
# where there is no NAME.erofs, so that who misses something is told which image to build. One that is
# there has its own, which is linked anew from the builder's cache where it is gone.
#
#   images/brings.sh --tool build/bin/image-tree --share build/share/skillvm RECIPE…
set -eu
tool=
share=
while [ $# -gt 0 ]; do
    case $1 in
    --tool) tool=${2:?} && shift ;;
    --share) share=${2:?} && shift ;;
    *) break ;;
    esac
    shift
done
export LC_ALL=C
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/image

link_again() { # name
    [ -d "$cache" ] || return 0
    built=$(find "$cache" -mindepth 2 -maxdepth 2 -samefile "$share/$1.erofs" -print -quit)
    [ -z "$built" ] || ln -f "${built%.erofs}.manifest" "$share/$1.manifest"
}

for recipe; do
    name=$("$tool" show "$recipe" name)
    if [ -e "$share/$name.erofs" ]; then
        [ -e "$share/$name.manifest" ] || link_again "$name"
        continue
    fi
    # The file that is there may be a link to the builder's cache.
    "$tool" show "$recipe" brings | sort -u >"$share/.$name.manifest.new"
    mv -f "$share/.$name.manifest.new" "$share/$name.manifest"
done
