# SPDX-License-Identifier: Apache-2.0
import signal


def spin():
    for _ in range(GIVEN["spinners"]):
        pid = os.fork()
        while pid == 0:
            pass
        children.append(pid)
    return len(children)


begin()
children = []
attempt("processes that never wait", spin)
hold()
for child in children:
    os.kill(child, signal.SIGKILL)
end()
