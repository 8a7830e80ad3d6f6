# sort: lines
import multiprocessing
import os


def work(n):
    return n * n, os.getpid() != parent


parent = os.getpid()
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print("probe:", pool.map(work, range(5)))
    p = multiprocessing.Process(target=print, args=("child",))
    p.start()
    p.join()
    print(p.exitcode, multiprocessing.get_start_method())
