# SPDX-License-Identifier: Apache-2.0
# Run by CPack on each package's files before it packs them: what Debian's policy asks for.
file(GLOB packages "${CPACK_TEMPORARY_DIRECTORY}/*")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP created UTC)
find_program(gzip gzip REQUIRED)
find_program(awk awk REQUIRED)
# What images and kernels in a package were made of.
set(lists_service vmlinux.packages python.packages)
set(lists_softhost softhost/vmlinux.packages softhost/root.packages)
foreach(package ${packages})
    get_filename_component(component "${package}" NAME)
    set(lists ${lists_${component}})
    string(TOUPPER "${component}" component)
    set(name "${CPACK_DEBIAN_${component}_PACKAGE_NAME}")
    if(NOT name)
        continue()
    endif()
    file(GLOB manuals "${package}/usr/share/man/man*/*.[0-9]")
    set(doc "${package}/usr/share/doc/${name}")
    file(MAKE_DIRECTORY "${doc}")
    file(COPY_FILE "${CPACK_SKILLVM_SOURCE}/cmake/package/copyright" "${doc}/copyright")
    file(COPY_FILE "${CPACK_SKILLVM_SOURCE}/CHANGELOG.md" "${doc}/CHANGELOG.md")
    file(WRITE "${doc}/changelog" "${name} (${CPACK_PACKAGE_VERSION}) stable; urgency=medium\n\n"
        "  * CHANGELOG.md beside this file says what changed.\n\n"
        " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    execute_process(COMMAND "${gzip}" -9n ${manuals} "${doc}/changelog" "${doc}/CHANGELOG.md"
        COMMAND_ERROR_IS_FATAL ANY)
    # What of others' is in it.
    list(TRANSFORM lists PREPEND "${CPACK_SKILLVM_SHARE}/")
    set(all "")
    foreach(file IN LISTS lists)
        file(READ "${file}" text)
        string(APPEND all "${text}")
    endforeach()
    string(SHA256 space "${all}")
    if(lists)
        execute_process(COMMAND "${awk}" -v name=${name} -v version=${CPACK_PACKAGE_VERSION}
            -v created=${created} -v space=${space}
            -f "${CPACK_SKILLVM_SOURCE}/images/spdx.awk" ${lists}
            OUTPUT_FILE "${doc}/${name}.spdx.json" COMMAND_ERROR_IS_FATAL ANY)
    endif()
    # What lintian is told, with the reasons.
    set(overrides "${CPACK_SKILLVM_SOURCE}/cmake/package/${name}.lintian-overrides")
    if(EXISTS "${overrides}")
        file(MAKE_DIRECTORY "${package}/usr/share/lintian/overrides")
        file(COPY_FILE "${overrides}" "${package}/usr/share/lintian/overrides/${name}")
    endif()
endforeach()
