# SPDX-License-Identifier: Apache-2.0
# libskillvm: its parts, and the library as it is installed.
skillvm_unit(client_sse apiclient)
skillvm_unit(client_http apicli)

if(TARGET fake_vmm)
    skillvm_unit(client_daemon apiclient Threads::Threads)
    target_sources(unit_client_daemon PRIVATE daemon_harness.c)
    target_compile_definitions(unit_client_daemon PRIVATE SKILLVMD="$<TARGET_FILE:skillvmd>"
        FAKE_VMM="$<TARGET_FILE:fake_vmm>")
    add_dependencies(unit_client_daemon skillvmd fake_vmm)

    skillvm_unit(client_install Threads::Threads)
    target_sources(unit_client_install PRIVATE daemon_harness.c)
    if(SKILLVM_SANITIZE)
        set(client_user_flags ${SKILLVM_SANITIZER})
    endif()
    target_compile_definitions(unit_client_install PRIVATE BUILD="${CMAKE_BINARY_DIR}"
        SOURCE="${CMAKE_CURRENT_SOURCE_DIR}/client_user" DOCS="${CMAKE_SOURCE_DIR}/docs" FLAGS="${client_user_flags}"
        SKILLVMD="$<TARGET_FILE:skillvmd>" FAKE_VMM="$<TARGET_FILE:fake_vmm>")
    add_dependencies(unit_client_install skillvmd fake_vmm libskillvm_shared libskillvm_static)
endif()
