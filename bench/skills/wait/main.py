import time

print("up", flush=True)
time.sleep(3600)
