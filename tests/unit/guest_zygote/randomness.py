# Must differ from run to run: shown only as the number of distinct values.
import random
import secrets
import subprocess
import sys
import tempfile
import uuid

values = [random.random(), secrets.token_hex(), str(uuid.uuid4()), tempfile.mktemp()]
print("probe:", len(set(values)), random.getstate()[0])
