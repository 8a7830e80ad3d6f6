#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Configures one preset of CMakePresets.json and builds it, or some targets, with ccache where there
# is one, which takes what another clone compiled:
#   cmake/build.sh PRESET [TARGET…]
set -eu
cd "$(dirname "$0")/.."
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi
preset=$1
shift
cmake --preset "$preset"
cmake --build --preset "$preset" ${1:+--target "$@"}
