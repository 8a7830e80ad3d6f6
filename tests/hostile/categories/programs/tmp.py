# SPDX-License-Identifier: Apache-2.0
begin()
for folder in ("/tmp", "/var/tmp", "/dev/shm", GIVEN["tmp"]):
    attempt(folder, lambda: marked_below(folder))
end()
