# SPDX-License-Identifier: Apache-2.0
import pwd

begin()
attempt("the accounts of this system", lambda: read("/etc/passwd"))
attempt("the same by its library", pwd.getpwall)
attempt("the host's file by its path", lambda: read(GIVEN["passwd"]))
end()
