# mode: archive
import os
import sys

print("probe:", __name__, __file__, __spec__, type(__loader__).__name__)
print([os.path.basename(entry) for entry in sys.path[:1]], sys.argv)
print(type(sys.path_importer_cache.get(sys.argv[0])).__name__)
