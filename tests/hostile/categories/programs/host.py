# SPDX-License-Identifier: Apache-2.0
import platform
import socket

begin()
attempt("names", lambda: (platform.uname(), socket.gethostname()))
for path in ("/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/etc/machine-id",
             "/etc/hostname", "/proc/cmdline", "/proc/self/mountinfo", "/sys/class/dmi/id/product_uuid"):
    attempt(path, lambda: read(path))
end()
