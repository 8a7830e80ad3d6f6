# State of preloaded modules must be that of a fresh import.
import asyncio  # its loggers stay where it was imported
import decimal
import json
import linecache
import logging
import random
import re
import subprocess
import sys
import tempfile
import time
import typing

print("probe:", linecache.cache, re.DEBUG, decimal.getcontext(), logging.root.handlers)
print(tempfile.tempdir, tempfile._name_sequence, subprocess._active, logging.Logger.manager.loggerDict)
print(abs(logging._startTime - time.time()) < 5, json.JSONEncoder.item_separator)
print(typing.get_type_hints(json.JSONDecoder), random.seed(7), random.random())
record = logging.makeLogRecord({})
print(record.process == __import__("os").getpid(), record.processName, record.threadName)
