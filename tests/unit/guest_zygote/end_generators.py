# sort: lines
# Suspended code gets to run its last lines.
import contextlib
import json


def generator(name):
    try:
        yield 1
    finally:
        print("finally", name)


@contextlib.contextmanager
def manager():
    try:
        yield
    finally:
        print("manager")


async def never_awaited():
    pass


async def suspended():
    try:
        await Stop()
    finally:
        print("coroutine")


class Stop:
    def __await__(self):
        yield


print("probe:")
one = generator("global")
next(one)
json.kept = generator("preloaded")
next(json.kept)
cycle = [generator("cycle")]
next(cycle[0])
cycle.append(cycle)
entered = manager()
entered.__enter__()
coroutine = never_awaited()
running = suspended()
running.send(None)
