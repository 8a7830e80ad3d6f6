# SPDX-License-Identifier: Apache-2.0
# The supervisor and the relay of the software host, against a fake QEMU: no emulation.
skillvm_unit(host_wire apihost)
skillvm_unit(host_pump apihost)
skillvm_unit(host_files apihost)
skillvm_unit(host_relay apihost)
skillvm_unit(host_standstill apihost)
skillvm_unit(host_supervisor apihost)
target_sources(unit_host_supervisor PRIVATE fake_qemu.c fake_host.c)
skillvm_unit(host_full apihost)
target_sources(unit_host_full PRIVATE fake_qemu.c fake_host.c)
target_link_options(unit_host_full PRIVATE -Wl,--wrap=statvfs)
skillvm_waits(unit_host_full unit_host_supervisor)
