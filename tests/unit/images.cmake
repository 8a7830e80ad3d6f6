# SPDX-License-Identifier: Apache-2.0
skillvm_unit(images_recipe imagetree)
skillvm_unit(images_tree imagetree)
skillvm_unit(images_oci imagetree)
skillvm_unit(images_oci_folder imagetree)
target_link_options(unit_images_oci_folder PRIVATE -Wl,--wrap=oci_stream_open,--wrap=fd_pread_full)
skillvm_unit(images_oci_json imagetree)
skillvm_unit(images_contents imagetree)
skillvm_script(unit_images_brings ${CMAKE_CURRENT_SOURCE_DIR}/images_brings.sh ${CMAKE_MAKE_PROGRAM}
    ${CMAKE_BINARY_DIR})
