# SPDX-License-Identifier: Apache-2.0
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)

skillvm_unit(skill_amounts apiskill)
skillvm_unit(skill_frontmatter apiskill)
skillvm_unit(skill_specification apispecification)
skillvm_unit(skill_names apiskill)
skillvm_unit(skill_archive apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_bombs apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_entry apiskill)
skillvm_unit(skill_tar apiskill)
skillvm_unit(skill_artifacts apiskill PkgConfig::ARCHIVE)
skillvm_unit(skill_pack apiskill)
