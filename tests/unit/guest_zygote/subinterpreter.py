import subprocess
import sys

print("probe:", flush=True)
code = "import sys; print(sys.argv, sys.path, sorted(sys.modules)); sys.exit(4)"
print(subprocess.run([sys.executable, "-c", code, "x"]).returncode)
import _xxsubinterpreters as interpreters

identity = interpreters.create()
interpreters.run_string(identity, "import sys; print(sys.path, sys.argv)")
interpreters.destroy(identity)
