# SPDX-License-Identifier: Apache-2.0
# The virtio devices against a fake driver: no KVM, no guest. The fuzz targets use it as well.
add_library(fake_driver STATIC ${CMAKE_CURRENT_SOURCE_DIR}/fake_driver.c
    ${CMAKE_CURRENT_SOURCE_DIR}/fake_vsock.c)
target_link_libraries(fake_driver PUBLIC vmmvirtio)

skillvm_unit(virtio_memory fake_driver)
skillvm_unit(virtio_queue fake_driver)
skillvm_unit(virtio_mmio fake_driver)
skillvm_unit(virtio_blk fake_driver)
skillvm_unit(virtio_blk_large fake_driver)
skillvm_unit(virtio_turns fake_driver)
target_link_options(unit_virtio_turns PRIVATE -Wl,--wrap=memory_load_u16)
skillvm_unit(virtio_vsock fake_driver)
skillvm_unit(virtio_vsock_ends fake_driver)
skillvm_unit(virtio_vsock_hostile fake_driver)
skillvm_unit(virtio_vsock_restore fake_driver)
