# SPDX-License-Identifier: Apache-2.0
skillvm_unit(images_recipe imagetree)
skillvm_unit(images_tree imagetree)
skillvm_unit(images_oci imagetree)
skillvm_unit(images_oci_json imagetree)
skillvm_unit(images_contents imagetree)
