# SPDX-License-Identifier: Apache-2.0
# For scripts of `cmake --install`.

# Copies files that the build only links to, followed to what they are; without one of them the
# installation ends, and names what makes them.
function(skillvm_install_files from to build targets)
    file(MAKE_DIRECTORY "${to}")
    foreach(name ${ARGN})
        if(NOT EXISTS "${from}/${name}")
            message(FATAL_ERROR "${from}/${name} is not there, and without it no skill runs: "
                "cmake --build ${build} --target ${targets}")
        endif()
        file(REAL_PATH "${from}/${name}" real)
        file(COPY_FILE "${real}" "${to}/${name}" ONLY_IF_DIFFERENT)
        message(STATUS "Installing: ${to}/${name}")
    endforeach()
endfunction()
