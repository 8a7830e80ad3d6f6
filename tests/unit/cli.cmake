# SPDX-License-Identifier: Apache-2.0
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)

skillvm_unit(cli_run_result apicli)
skillvm_unit(cli_kvm_probe apicli)
skillvm_unit(cli_host_check apicli)
skillvm_unit(cli_files apicli PkgConfig::ARCHIVE)
skillvm_unit(cli_daemon apicli)
skillvm_unit(cli_table apicli)
skillvm_unit(cli_server apicli)
skillvm_unit(cli_show apicli)

# The command line whole, against a daemon with a stand-in for the VMM.
if(TARGET fake_vmm)
    foreach(name verbs admin remote)
        skillvm_unit(cli_${name} Threads::Threads)
        target_sources(unit_cli_${name} PRIVATE daemon_harness.c)
        target_compile_definitions(unit_cli_${name} PRIVATE SKILLVM="$<TARGET_FILE:skillvm>"
            SKILLVM_DIR="$<TARGET_FILE_DIR:skillvm>" SKILLVMD="$<TARGET_FILE:skillvmd>"
            FAKE_VMM="$<TARGET_FILE:fake_vmm>")
        add_dependencies(unit_cli_${name} skillvm skillvmd fake_vmm)
    endforeach()
endif()

# The words of the command line: its help, the completion for bash and the man page agree.
add_test(NAME unit_cli_words COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/cli_words.py
    $<TARGET_FILE:skillvm> ${CMAKE_SOURCE_DIR}/api/cli/completion/skillvm.bash
    ${CMAKE_SOURCE_DIR}/api/cli/man/skillvm.1)
set_tests_properties(unit_cli_words PROPERTIES LABELS unit TIMEOUT 120 SKIP_RETURN_CODE 77)
