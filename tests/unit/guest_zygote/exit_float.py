import sys

print("probe:", end="")
sys.exit(2.5)
