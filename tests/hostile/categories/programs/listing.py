# SPDX-License-Identifier: Apache-2.0
begin()
for folder in ("/", "/home", "/root", "/data", "/mnt", "/run", GIVEN["folder"]):
    attempt(folder, lambda: sorted(os.listdir(folder)))
end()
