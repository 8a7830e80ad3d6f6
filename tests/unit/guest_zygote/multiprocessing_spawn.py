# sort: lines
import multiprocessing


def work(n):
    return n * n


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    with multiprocessing.Pool(2) as pool:
        print("probe:", pool.map(work, range(5)))
