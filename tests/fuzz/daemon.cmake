# SPDX-License-Identifier: Apache-2.0
if(TARGET apidaemon)
    skillvm_fuzz(guest_frames apidaemon)
    skillvm_fuzz(config apidaemon)
    skillvm_fuzz(admin_json apidaemon)
    skillvm_fuzz(request_json apidaemon)
    skillvm_fuzz(http apidaemon Threads::Threads)
    target_sources(fuzz_http PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/http_fixture.c)
endif()
