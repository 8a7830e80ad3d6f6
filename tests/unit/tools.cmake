# SPDX-License-Identifier: Apache-2.0
skillvm_unit(tools_names apitools)
skillvm_unit(tools_hostile apitools)
skillvm_unit(tools_parser apitools)

# argparse itself against what is made of it: descriptions, schemas, command lines.
add_executable(tools_argv tools_argv.c)
target_link_libraries(tools_argv PRIVATE apitools base)
set_target_properties(tools_argv PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    EXCLUDE_FROM_ALL OFF)
skillvm_script(unit_tools_parsers /usr/bin/python3
    ${CMAKE_CURRENT_SOURCE_DIR}/tools_parsers.py ${CMAKE_SOURCE_DIR}/api/tools/parser_probe.py
    $<TARGET_FILE:tools_argv>)
