# SPDX-License-Identifier: Apache-2.0
import signal


def fork():
    while len(children) < GIVEN["forks"]:
        try:
            pid = os.fork()
        except BlockingIOError:
            break
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
    return len(children)


begin()
children = []
attempt("children", fork)
hold()
for child in children:
    os.kill(child, signal.SIGKILL)
end()
