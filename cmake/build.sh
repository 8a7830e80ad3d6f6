#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Configures one preset of CMakePresets.json and builds it, or some targets, with ccache where there
# is one, which takes what another clone compiled:
#   cmake/build.sh PRESET [TARGET…]
set -eu
cd "$(dirname "$0")/.."
ccache=''
if command -v ccache >/dev/null; then
    # What a file includes is what the compiler says, not what preprocessing it beforehand shows.
    export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
    ccache=ccache
fi
# shellcheck disable=SC2046 # words, of which there may be none
CMAKE_C_COMPILER_LAUNCHER=$(echo env $(cmake/hugepages.sh) $ccache | tr ' ' ';')
export CMAKE_C_COMPILER_LAUNCHER
preset=$1
shift
cmake --preset "$preset"
cmake --build --preset "$preset" ${1:+--target "$@"}
