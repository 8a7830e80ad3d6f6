# SPDX-License-Identifier: Apache-2.0
skillvm_fuzz(guest_dns guestcore)
skillvm_fuzz(guest_frame guestcore)
skillvm_fuzz(guest_run guestcore)
skillvm_fuzz(guest_tar guestcore)
