# SPDX-License-Identifier: Apache-2.0
# The seeds come from make_virtio_corpus.py.
skillvm_fuzz(virtqueue fake_driver)
skillvm_fuzz(mmio fake_driver)
skillvm_fuzz(vsock fake_driver)
