# SPDX-License-Identifier: Apache-2.0
skillvm_unit(mcp_message apimcp)
skillvm_unit(mcp_server apimcp Threads::Threads)
skillvm_unit(mcp_stateless apimcp Threads::Threads)
skillvm_unit(mcp_resources apimcp Threads::Threads)
foreach(name server stateless resources)
    target_sources(unit_mcp_${name} PRIVATE mcp_script.c)
endforeach()
skillvm_waits(unit_mcp_resources)
