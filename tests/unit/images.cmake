# SPDX-License-Identifier: Apache-2.0
skillvm_unit(images_recipe imagetree)
skillvm_unit(images_tree imagetree)
