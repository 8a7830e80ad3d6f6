# SPDX-License-Identifier: Apache-2.0
begin()
attempt("a command", lambda: os.system("echo a shell runs"))
attempt("a program of the host's", lambda: os.system(GIVEN["program"]))
attempt("a command that writes there", lambda: os.system(f"echo x >>{GIVEN['record']}"))
end()
