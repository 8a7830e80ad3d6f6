# SPDX-License-Identifier: Apache-2.0
# skillvmd: its parts on their own, then whole with a stand-in for the VMM and the guest.
if(TARGET apidaemon)
    foreach(name
        config
        conns
        decoder
        download_link
        execution
        failure
        fair_gate
        fair_queue
        http
        input_files
        json
        manager
        metrics
        migration
        quota
        rate
        registry
        request
        result
        retention
        routes
        snapshot
        store
        tenants)
        skillvm_unit(daemon_${name} apidaemon)
    endforeach()

    target_sources(unit_daemon_metrics PRIVATE prometheus_text.c)
    target_link_libraries(unit_daemon_migration PRIVATE sqlite3)

    add_executable(fake_vmm fake_vmm.c fake_guest.c fake_files_in.c fake_tar.c)
    target_link_libraries(fake_vmm PRIVATE base)
    set_target_properties(fake_vmm PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    foreach(name abuse abuse_crowd abuse_slow api disk executions faults files isolation limits machines service skills tools)
        skillvm_unit(daemon_${name} Threads::Threads)
        target_sources(unit_daemon_${name} PRIVATE daemon_harness.c)
        target_compile_definitions(unit_daemon_${name} PRIVATE
            SKILLVMD="$<TARGET_FILE:skillvmd>" FAKE_VMM="$<TARGET_FILE:fake_vmm>")
        add_dependencies(unit_daemon_${name} skillvmd fake_vmm)
        # They wait for real deadlines, and a busy machine makes everything around them slow.
        set_tests_properties(unit_daemon_${name} PROPERTIES TIMEOUT 400)
    endforeach()
    skillvm_unit(daemon_renewal apimachine)
    skillvm_unit(daemon_guest apimachine Threads::Threads)
    foreach(name pool profiles)
        skillvm_unit(daemon_${name} apimachine Threads::Threads)
        target_sources(unit_daemon_${name} PRIVATE pool_fixture.c)
        target_compile_definitions(unit_daemon_${name} PRIVATE FAKE_VMM="$<TARGET_FILE:fake_vmm>")
        add_dependencies(unit_daemon_${name} fake_vmm)
    endforeach()
    target_sources(unit_daemon_abuse_slow PRIVATE http_fixture.c)
    target_link_libraries(unit_daemon_abuse_slow PRIVATE apidaemon)
    # It walks the daemon's own table of routes.
    target_link_libraries(unit_daemon_isolation PRIVATE apidaemon)
    target_sources(unit_daemon_isolation PRIVATE two_tenants.c)
    target_sources(unit_daemon_disk PRIVATE prometheus_text.c tenants_world.c)
    target_sources(unit_daemon_limits PRIVATE prometheus_text.c tenants_world.c)
    target_sources(unit_daemon_machines PRIVATE prometheus_text.c tenants_world.c)
    target_link_libraries(unit_daemon_limits PRIVATE sqlite3)
endif()
