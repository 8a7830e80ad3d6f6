# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(wheels apiwheels)
