# SPDX-License-Identifier: Apache-2.0
skillvm_unit(base_err)
skillvm_unit(base_log)
skillvm_unit(base_bytes)
skillvm_unit(base_buf)
skillvm_unit(base_fd)
skillvm_unit(base_crc32)
skillvm_unit(base_clock)
skillvm_unit(base_dotted)
