from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor


def work(n):
    if n == 3:
        raise ValueError(n)
    return n


if __name__ == "__main__":
    with ThreadPoolExecutor() as pool:
        print("probe:", list(pool.map(work, range(3))))
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(work, range(3))), repr(pool.submit(work, 3).exception()))
