# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(frontmatter apispecification)
skillvm_fuzz(archive apiskill)
skillvm_fuzz(artifacts apiskill)
skillvm_fuzz(sse apicli apiclient)
skillvm_fuzz(imports apiskill)
skillvm_fuzz(semver apiskill)
skillvm_fuzz(image_manifest apiskill)
skillvm_fuzz(image_recipes apiskill)
