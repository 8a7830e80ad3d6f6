#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one preset of CMakePresets.json, with ccache where there is one:
#   cmake/build.sh PRESET
set -eu
cd "$(dirname "$0")/.."
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
cmake --preset "$1"
cmake --build --preset "$1"
