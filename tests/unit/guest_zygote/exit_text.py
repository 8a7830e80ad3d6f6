import sys

print("probe:", end="")
sys.exit('a message')
