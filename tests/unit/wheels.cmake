# SPDX-License-Identifier: Apache-2.0
skillvm_unit(wheels_text apiwheels)
skillvm_unit(wheels_resolve apiwheels)
