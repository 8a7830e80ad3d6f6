# SPDX-License-Identifier: Apache-2.0
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)

skillvm_unit(skill_amounts apiskill)
skillvm_unit(skill_frontmatter apiskill)
skillvm_unit(skill_specification apispecification)
skillvm_unit(skill_names apiskill)
skillvm_unit(skill_archive apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_bombs apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_zip apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_entry apiskill)
skillvm_unit(skill_code apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_tar apiskill)
skillvm_unit(skill_artifacts apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_artifacts_flood apiskill)
skillvm_unit(skill_tree apiskill guestcore)
skillvm_unit(skill_disk apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_pack apiskill)
skillvm_unit(skill_imports apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_needs apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_requirements apiskill)
foreach(name images images_node)
    skillvm_unit(skill_${name} apiskill PkgConfig::ARCHIVE)
    target_sources(unit_skill_${name} PRIVATE images_world.c)
endforeach()
skillvm_unit(skill_js apiskill)
skillvm_unit(skill_as_module apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_profile apiskill)

# The scanner of imports against Python's own parser, over its library.
add_executable(skill_imports_show skill_imports_show.c)
target_link_libraries(skill_imports_show PRIVATE apiskill base)
set_target_properties(skill_imports_show PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME unit_skill_imports_ast COMMAND /usr/bin/python3
    ${CMAKE_CURRENT_SOURCE_DIR}/skill_imports.py ${CMAKE_BINARY_DIR}/tests/skill_imports_show)
set_tests_properties(unit_skill_imports_ast PROPERTIES LABELS unit
    SKIP_RETURN_CODE 77)
