# SPDX-License-Identifier: Apache-2.0
import signal


def send(what):
    # In a guest another process may have the number, and be this one.
    if GIVEN["pid"] in (os.getpid(), os.getppid()):
        raise ProcessLookupError(errno.ESRCH, "not the host's")
    os.kill(GIVEN["pid"], what)


begin()
attempt("SIGTERM", lambda: send(signal.SIGTERM))
attempt("SIGKILL", lambda: send(signal.SIGKILL))
end()
