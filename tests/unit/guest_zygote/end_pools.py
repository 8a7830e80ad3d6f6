# sort: lines
# Pools that nobody shut down.
import concurrent.futures
import multiprocessing
import time


def slow(n):
    time.sleep(0.1)
    print("done", n, flush=True)


if __name__ == "__main__":
    print("probe:", flush=True)
    pool = concurrent.futures.ThreadPoolExecutor(1)
    for i in range(3):
        pool.submit(slow, i)
    process = multiprocessing.get_context("fork").Process(target=slow, args=("process",))
    process.start()
    process.join()
    daemon = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
    daemon.start()
