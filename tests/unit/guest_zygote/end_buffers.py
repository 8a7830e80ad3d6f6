# Content that is still in buffers at the end, held in every kind of place.
import _thread
import builtins
import codecs
import contextvars
import json
import logging
import os
import sys
import threading

parent = os.getpid()
if os.fork() == 0:
    # Stays behind to look at what this process leaves.
    sys.stdout.flush()
    while os.getppid() == parent:
        os.sched_yield()
    for name in sorted(n for n in os.listdir(".") if n.endswith(".txt")):
        print(name, open(name).read())
    sys.stdout.flush()
    os._exit(0)
print("probe:", flush=True)


def text(name):
    file = open(name + ".txt", "w")
    file.write(name)
    return file


def function(value=text("default")):
    return value


def generator():
    file = text("generator")
    yield file


json.loads.attribute = text("preloaded_function")
json.attribute = text("preloaded_module")
json.JSONEncoder.attribute = text("preloaded_class")
logging.Logger.manager.attribute = [text("preloaded_object")]
os.environ.attribute = {"deep": [text("preloaded_deep")]}
builtins.attribute = text("builtins")
sys.attribute = text("sys")
sys.ps1 = text("ps1")
local = threading.local()
local.file = text("local")
json.local = threading.local()
json.local.file = text("preloaded_local")
variable = contextvars.ContextVar("variable")
variable.set(text("context"))
codecs.register(lambda name, file=text("codec"): None)
os.register_at_fork(before=lambda file=text("before_fork"): None)
sys.addaudithook(lambda event, args, file=text("audit"): None)
running = generator()
next(running)
cycle = [text("cycle")]
cycle.append(cycle)
binary = open("binary.txt", "wb")
binary.write(b"binary")
both = open("both.txt", "w+")
both.write("both")
json.loads = lambda file=text("replaced_function"): None
sys.excepthook = lambda *args, file=text("excepthook"): None
sys.unraisablehook = lambda *args, file=text("unraisablehook"): None
