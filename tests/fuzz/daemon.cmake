# SPDX-License-Identifier: Apache-2.0
if(TARGET apidaemon)
    skillvm_fuzz(guest_frames apidaemon)
    skillvm_fuzz(config apidaemon)
    skillvm_fuzz(request_json apidaemon)
endif()
