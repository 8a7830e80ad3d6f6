import os

with open(os.path.join(os.environ["SANDBOX_FILES_DIR"], "mebibyte.bin"), "wb") as f:
    f.write(bytes(range(256)) * 4096)
