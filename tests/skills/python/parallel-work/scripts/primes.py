def count(bounds):
    low, high = bounds
    return sum(n > 1 and all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(low, high))
