# SPDX-License-Identifier: Apache-2.0
begin()
attempt("eval", lambda: eval("6 * 7"))
attempt("eval of a read", lambda: eval(f"open({GIVEN['secret']!r}).read()"))
attempt("exec of a read", lambda: exec(compile(f"print(open({GIVEN['secret']!r}).read())", "x", "exec")))
end()
