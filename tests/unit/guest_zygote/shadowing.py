# file: json.py answer = "the script's own json"\n
# file: random/__init__.py answer = "its own random"\n
import json
import random
import sys

print("probe:", json.answer, random.answer, json.__file__ == sys.path[0] + "/json.py")
print(sys.orig_argv)
