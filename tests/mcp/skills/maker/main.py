# SPDX-License-Identifier: Apache-2.0
import os

folder = os.environ["SANDBOX_FILES_DIR"]
os.mkdir(os.path.join(folder, "deep"))
with open(os.path.join(folder, "deep", "a text.md"), "w") as file:
    file.write("# Größe\n")
with open(os.path.join(folder, "bytes.bin"), "wb") as file:
    file.write(bytes(range(256)))
