# mode: directory
import sys

print("probe:", sys.argv, sys.path[:2], __name__, __file__, __spec__)
