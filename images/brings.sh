#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tells what images would have that are not built, by what their recipes say they bring: NAME.manifest
# where there is no NAME.erofs, so that who misses something is told which image to build.
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
for recipe; do
    name=$("$tool" show "$recipe" name)
    [ ! -e "$share/$name.erofs" ] || continue
    # The file that is there may be a link to the builder's cache.
    "$tool" show "$recipe" brings | sort -u >"$share/.$name.manifest.new"
    mv -f "$share/.$name.manifest.new" "$share/$name.manifest"
done
