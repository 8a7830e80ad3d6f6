import sys

print("probe:", sys.argv[0] in sys.path_importer_cache, sys.path_importer_cache.get(sys.argv[0], 1))
