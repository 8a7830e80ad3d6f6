# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(state vmmcore)
skillvm_fuzz(kernel vmmcore)
