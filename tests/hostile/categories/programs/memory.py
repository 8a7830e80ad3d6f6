# SPDX-License-Identifier: Apache-2.0
def take():
    try:
        while len(held) < GIVEN["memory_mib"] // 16:
            held.append(b"x" * (16 << 20))
    except MemoryError:
        pass
    return len(held) * 16


begin()
held = []
attempt("MiB", take)
hold()
end()
