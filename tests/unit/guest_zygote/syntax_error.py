# file: broken.py def f(:\n
print("probe:", flush=True)
import broken
