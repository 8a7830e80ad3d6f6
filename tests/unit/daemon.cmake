# SPDX-License-Identifier: Apache-2.0
# skillvmd: its parts on their own, and the stand-in for the VMM and the guest.
if(TARGET apidaemon)
    foreach(name
        audit
        config
        conns
        decoder
        download_link
        execution
        failure
        fair_gate
        fair_queue
        file_plan
        form
        http
        input_files
        json
        ledger_waits
        pauses
        plans
        manager
        metrics
        migration
        quota
        rate
        records
        registry
        request
        result
        retention
        routes
        session_plan
        skill_disk
        skill_plan
        skill_room
        snapshot
        store
        tenants
        turns
        uses)
        skillvm_unit(daemon_${name} apidaemon)
    endforeach()

    target_sources(unit_daemon_metrics PRIVATE prometheus_text.c)
    target_link_libraries(unit_daemon_migration PRIVATE sqlite3)
    target_link_libraries(unit_daemon_plans PRIVATE sqlite3)
    target_link_libraries(unit_daemon_registry PRIVATE sqlite3)
    target_link_options(unit_daemon_manager PRIVATE -Wl,--wrap=fstatvfs)

    add_executable(fake_vmm fake_vmm.c fake_guest.c fake_disk.c fake_files_in.c fake_net.c fake_session.c fake_ticks.c
        fake_tar.c)
    # There is nothing to load in the jail, sanitizers no more than the C library.
    foreach(name buf bytes clock crc32 err fd)
        target_sources(fake_vmm PRIVATE ${PROJECT_SOURCE_DIR}/base/${name}.c)
    endforeach()
    target_compile_options(fake_vmm PRIVATE -fno-sanitize=all)
    target_link_options(fake_vmm PRIVATE -static -fno-sanitize=all)
    set_target_properties(fake_vmm PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests EXCLUDE_FROM_ALL OFF)
    skillvm_unit(egress_address apiegress)
    foreach(name connect relay)
        skillvm_unit(egress_${name} apiegress)
        target_sources(unit_egress_${name} PRIVATE egress_world.c)
        target_link_options(unit_egress_${name} PRIVATE -Wl,--wrap=connect,--wrap=socket)
    endforeach()
    skillvm_unit(daemon_known_digests apimachine)
    target_link_options(unit_daemon_known_digests PRIVATE
        -Wl,--wrap=clock_realtime_ns,--wrap=fstat)
    skillvm_unit(daemon_change_entry apicluster)
    skillvm_unit(daemon_node_entry apicluster)
    skillvm_unit(daemon_loads apicluster)
    skillvm_unit(daemon_forward_head apidaemon)
    skillvm_unit(daemon_live_ask apicluster)
    skillvm_unit(daemon_node_wish apicluster)
    skillvm_unit(daemon_object_meta apicluster)
    skillvm_unit(daemon_record_entry apicluster)
    skillvm_unit(daemon_deed_entry apicluster)
    skillvm_unit(daemon_hold_entry apicluster)
    skillvm_unit(daemon_cluster_batches apicluster Threads::Threads)
    target_link_options(unit_daemon_cluster_batches PRIVATE -Wl,--wrap=clock_monotonic_ns)
    skillvm_unit(daemon_cluster_lost apicluster Threads::Threads)
    skillvm_unit(daemon_cluster_puts apicluster Threads::Threads)
    target_link_options(unit_daemon_cluster_puts PRIVATE -Wl,--wrap=cluster_check_joined)
    skillvm_unit(daemon_cluster_questions apicluster Threads::Threads)
    skillvm_unit(daemon_cluster_records apicluster Threads::Threads)
    target_link_options(unit_daemon_cluster_records PRIVATE
        -Wl,--wrap=cluster_check_joined,--wrap=cluster_check_unknown)
    skillvm_unit(daemon_nats_end)
    target_sources(unit_daemon_nats_end PRIVATE ${PROJECT_SOURCE_DIR}/api/daemon/nats/nats_end.c)
    target_link_options(unit_daemon_nats_end PRIVATE -Wl,--wrap=sem_clockwait)
    skillvm_unit(daemon_cluster_state apicluster Threads::Threads)
    skillvm_waits(unit_daemon_cluster_state)
    skillvm_unit(daemon_checksum apimachine)
    skillvm_unit(daemon_images apimachine)
    skillvm_unit(daemon_image_tables apimachine)
    target_sources(unit_daemon_image_tables PRIVATE fake_built.c)
    skillvm_unit(daemon_changes_turns apiengine Threads::Threads)
    target_link_options(unit_daemon_changes_turns PRIVATE
        -Wl,--wrap=cluster_change,--wrap=cluster_follow)
    skillvm_unit(daemon_choices apiengine)
    skillvm_unit(daemon_objects_put apiengine Threads::Threads)
    target_link_options(unit_daemon_objects_put PRIVATE
        -Wl,--wrap=cluster_object_put,--wrap=cluster_object_confirm)
    skillvm_unit(daemon_network apiengine)
    skillvm_unit(daemon_renewal apimachine)
    skillvm_unit(daemon_shares apimachine Threads::Threads)
    skillvm_unit(daemon_guest apimachine Threads::Threads)
    skillvm_waits(unit_daemon_guest)
    skillvm_unit(daemon_vm apimachine Threads::Threads)
    foreach(name kept pool profiles)
        skillvm_unit(daemon_${name} apimachine Threads::Threads)
        target_sources(unit_daemon_${name} PRIVATE pool_fixture.c fake_built.c)
    endforeach()
    add_executable(jail_probe jail_probe.c)
    target_compile_options(jail_probe PRIVATE -fno-sanitize=all)
    target_link_options(jail_probe PRIVATE -static -fno-sanitize=all)
    skillvm_unit(daemon_jail apimachine Threads::Threads)
    target_compile_definitions(unit_daemon_jail PRIVATE PROBE="$<TARGET_FILE:jail_probe>")
    target_sources(unit_daemon_jail PRIVATE jail_world.c)
    target_link_options(unit_daemon_jail PRIVATE -Wl,--wrap=fd_receive)
    add_dependencies(unit_daemon_jail jail_probe)
    skillvm_unit(daemon_jail_service apimachine Threads::Threads)
    target_compile_definitions(unit_daemon_jail_service PRIVATE PROBE="$<TARGET_FILE:jail_probe>")
    target_sources(unit_daemon_jail_service PRIVATE jail_world.c)
    add_dependencies(unit_daemon_jail_service jail_probe)
    foreach(name jail jail_service kept pool profiles vm)
        target_compile_definitions(unit_daemon_${name} PRIVATE FAKE_VMM="$<TARGET_FILE:fake_vmm>"
            JAIL="$<TARGET_FILE:skillvm-jail>")
        add_dependencies(unit_daemon_${name} fake_vmm skillvm-jail)
    endforeach()
    target_link_options(unit_daemon_kept PRIVATE -Wl,--wrap=sha256_of_fd)
    target_link_options(unit_daemon_vm PRIVATE -Wl,--wrap=jail_look)
endif()
