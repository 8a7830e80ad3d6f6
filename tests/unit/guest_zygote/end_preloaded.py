# sort: lines
# What a script leaves in modules that are not its own is finalised too.
import json
import logging
import os
import string
import textwrap


class Noisy:
    def __init__(self, name):
        self.name = name

    def __del__(self, write=os.write):
        write(1, f"gone {self.name}\n".encode())


class NoisyList(list):
    def __del__(self, write=os.write):
        write(1, b"gone list\n")


print("probe:", flush=True)
json.kept = Noisy("module")
json.JSONEncoder.kept = Noisy("class")
string.Template.kept = NoisyList([Noisy("in a list")])
textwrap.dedent.kept = Noisy("function")
logging.kept = Noisy("logging")
os.kept = Noisy("os")
os.getcwd = lambda kept=Noisy("replaced"): "/"
json.kept.other = json.kept
