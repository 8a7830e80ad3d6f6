import atexit

atexit.register(print, "once")
print("probe:")
atexit._run_exitfuncs()
import csv
import json
import uuid

print(json.dumps({"still": "importable"}), csv.__name__, uuid.uuid4().version)
