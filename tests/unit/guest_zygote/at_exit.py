# Order of everything that happens at exit.
import atexit
import gc
import logging
import threading
import time
import weakref


class Loud:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name, flush=True)


class Node:
    pass


def late():
    time.sleep(0.2)
    print("thread done")


print("probe:")
atexit.register(print, "exit 1")
atexit.register(print, "exit 2")
a = Loud("global")
_b = Loud("underscored global")
node = Node()
node.me = node
node.loud = Loud("cycle")
weakref.finalize(node, print, "finalized")
weakref.finalize(a, print, "finalized a")
Node.attribute = Loud("class attribute")
in_list = [Loud("list")]


def function(default=Loud("default")):
    return default


threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
logging.getLogger().addHandler(logging.StreamHandler())
logging.warning("logged %d", 1)
unclosed = open("unclosed.txt", "w")
unclosed.write("x" * 100)
gc.collect()
print("end of script")
