import json
import sys

print("probe:", sys.stdin.tell(), repr(sys.stdin.readline()), sys.stdin.tell())
print(json.dumps(sys.stdin.read()), sys.stdin.read(), sys.stdin.seek(0), len(sys.stdin.buffer.read()))
