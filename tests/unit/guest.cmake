# SPDX-License-Identifier: Apache-2.0
skillvm_unit(guest_compile guestcore)
target_link_options(unit_guest_compile PRIVATE -Wl,--wrap=poll)
skillvm_script(unit_guest_compile_room /usr/bin/python3
    ${CMAKE_CURRENT_SOURCE_DIR}/guest_compile.py ${CMAKE_SOURCE_DIR}/guest-init/zygote/compile.py)
skillvm_unit(guest_dns guestcore)
# What a sanitizer calls by itself would be refused with the rest.
if(NOT SKILLVM_SANITIZE)
    skillvm_unit(guest_filter guestcore)
    skillvm_in_release(unit_guest_filter)
endif()
skillvm_unit(guest_frame guestcore)
skillvm_unit(guest_net guestcore)
skillvm_unit(guest_run guestcore)
skillvm_unit(guest_tar_read guestcore)
skillvm_unit(guest_tar_write guestcore)
skillvm_unit(guest_server guestcore)
skillvm_unit(guest_session guestcore)
set_property(TEST unit_guest_server APPEND PROPERTY
    ENVIRONMENT "SKILLVM_TEST_ZYGOTE=${CMAKE_BINARY_DIR}/share/zygote")

# The zygote in the image's interpreter against Debian's: the same scripts must show the same.
set(zygote_test ${CMAKE_CURRENT_SOURCE_DIR}/guest_zygote.py
    --interpreter ${CMAKE_BINARY_DIR}/share/python/python3.11)
skillvm_script(unit_guest_zygote /usr/bin/python3 ${zygote_test} ${CMAKE_BINARY_DIR}/share/zygote)
skillvm_script(unit_guest_zygote_warm /usr/bin/python3
    ${zygote_test} --warm ${CMAKE_SOURCE_DIR}/images/python.yaml ${CMAKE_BINARY_DIR}/share/zygote)
# The longest, so that nothing waits for them alone.
if(NOT SKILLVM_SANITIZE)
    set_tests_properties(unit_guest_zygote unit_guest_zygote_warm PROPERTIES COST 90)
endif()
skillvm_script(unit_guest_reseed /usr/bin/python3
    ${CMAKE_CURRENT_SOURCE_DIR}/guest_reseed.py
    --interpreter ${CMAKE_BINARY_DIR}/share/python/python3.11 ${CMAKE_BINARY_DIR}/share/zygote)
# What the recipe lists as worth warming holds nothing that a wake-up would have to renew.
skillvm_script(unit_guest_warm /usr/bin/python3
    ${CMAKE_CURRENT_SOURCE_DIR}/guest_warm.py ${CMAKE_SOURCE_DIR})
