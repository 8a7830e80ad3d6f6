# SPDX-License-Identifier: Apache-2.0
import sys

print("before the end")
print("this is why", file=sys.stderr)
sys.exit(3)
