# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(mcp_messages apimcp Threads::Threads)
