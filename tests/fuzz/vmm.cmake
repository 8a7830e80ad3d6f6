# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(state vmmcore)
skillvm_fuzz(working_set vmmcore)
skillvm_fuzz(kernel vmmcore)
# With the programs that the guest of tests/hostile runs too.
skillvm_fuzz(devices vmmcore)
target_sources(fuzz_devices PRIVATE devices_oracle.c ${CMAKE_SOURCE_DIR}/tests/hostile/programs.c
    ${CMAKE_SOURCE_DIR}/tests/hostile/programs_parts.c)
# It looks at all of memory after each access, and is not what is tested.
set_source_files_properties(devices_oracle.c PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
