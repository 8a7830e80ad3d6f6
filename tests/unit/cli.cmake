# SPDX-License-Identifier: Apache-2.0
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)

skillvm_unit(cli_sse apicli)
skillvm_unit(cli_result apicli)
skillvm_unit(cli_probe apicli)
skillvm_unit(cli_files apicli PkgConfig::ARCHIVE)
skillvm_unit(cli_json apicli)
skillvm_unit(cli_client apicli)
skillvm_unit(cli_daemon apicli)
