# SPDX-License-Identifier: Apache-2.0
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)

skillvm_unit(cli_run_result apicli)
skillvm_unit(cli_kvm_probe apicli)
skillvm_unit(cli_host_check apicli)
skillvm_unit(cli_files apicli PkgConfig::ARCHIVE)
skillvm_unit(cli_soft_skills apicli)
skillvm_unit(cli_daemon apicli)
skillvm_unit(cli_image_need apicli)
skillvm_unit(cli_table apicli)
skillvm_unit(cli_server apicli)
skillvm_unit(cli_show apicli)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
skillvm_unit(cli_expected apicli PkgConfig::CJSON)
skillvm_unit(cli_run_files apicli apiclient PkgConfig::CJSON)

# The words of the command line: its help, the completion for bash and the man page agree.
skillvm_script(unit_cli_words /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/cli_words.py
    $<TARGET_FILE:skillvm> ${CMAKE_BINARY_DIR}/api/pages/skillvm.bash
    ${CMAKE_BINARY_DIR}/api/pages/skillvm.1)
