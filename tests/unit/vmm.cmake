# SPDX-License-Identifier: Apache-2.0
skillvm_unit(vmm_state vmmcore)
skillvm_unit(vmm_devicetree vmmcore)
skillvm_unit(vmm_loader vmmcore)
skillvm_unit(vmm_cpuid vmmcore)
skillvm_unit(vmm_serial vmmcore)
skillvm_unit(vmm_probe vmmcore)
skillvm_unit(vmm_working_set vmmcore)
skillvm_unit(vmm_private_pages vmmcore)
