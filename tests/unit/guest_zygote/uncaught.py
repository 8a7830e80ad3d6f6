print("probe: before")


def inner(n):
    return 1 / n


def outer():
    try:
        inner(0)
    except ZeroDivisionError as error:
        raise ValueError("outer") from error


outer()
