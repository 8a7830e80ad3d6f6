# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(tool_parser apitools)
if(TARGET apidaemon)
    skillvm_fuzz(tool_call apidaemon)
endif()
