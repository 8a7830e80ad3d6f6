# SPDX-License-Identifier: Apache-2.0
import subprocess


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done.returncode, done.stdout


begin()
attempt("a program", lambda: run("echo", "a program runs"))
attempt("a program of the host's", lambda: run(GIVEN["program"]))
attempt("the same by a shell", lambda: run(f"cd / && .{GIVEN['program']}", shell=True))
attempt("posix_spawn", lambda: os.waitpid(os.posix_spawn(GIVEN["program"], ["x"], {}), 0))
end()
