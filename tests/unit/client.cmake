# SPDX-License-Identifier: Apache-2.0
# libskillvm: its parts.
skillvm_unit(client_sse apiclient)
skillvm_unit(client_http apicli)
