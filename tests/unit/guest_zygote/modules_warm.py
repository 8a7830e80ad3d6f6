# Modules worth warming, by what they remember and by what they leave to the interpreter's end.
import asyncio
import concurrent.futures
import configparser
import decimal
import email.message
import hashlib
import http.client
import mimetypes
import pickle
import secrets
import shutil
import socket
import sqlite3
import ssl
import statistics
import tarfile
import tempfile
import urllib.request
import uuid
import xml.dom.minidom
import xml.etree.ElementTree as ET
import zipfile
import zoneinfo

print("probe:", decimal.getcontext(), decimal.localcontext)
print(asyncio.events._event_loop_policy, asyncio.tasks._current_tasks, asyncio.tasks._all_tasks.data)
print(tempfile.tempdir, tempfile._name_sequence, tempfile.gettempdir())
print(urllib.request._opener, mimetypes.inited, socket.getdefaulttimeout(), uuid._node)
print(sorted(hashlib.algorithms_available), ssl.OPENSSL_VERSION, ssl.create_default_context().options)
print(sqlite3.sqlite_version, sqlite3.adapters.keys(), sqlite3.converters.keys())
print(zoneinfo.TZPATH, zoneinfo.ZoneInfo("Europe/Paris"), http.client.HTTPConnection.debuglevel)
print(statistics.stdev([1, 2, 3.5]), pickle.loads(pickle.dumps(decimal.Decimal("1.10"))))
print(sorted(name for name in dir(concurrent.futures) if "Executor" in name))
print(len(secrets.token_bytes(9)), shutil.get_archive_formats(), tarfile.ENCODING, zipfile.ZIP_DEFLATED)
tree = ET.fromstring("<a b='1'>t<!-- c --></a>")
print(ET.tostring(tree), xml.dom.minidom.parseString("<x/>").documentElement)
message = email.message.EmailMessage()
message.set_content("caf\u00e9")
print(message.as_string(), configparser.ConfigParser().sections())


class Last:
    def __init__(self, what):
        self.what = what

    def __del__(self):
        print("gone:", self.what, decimal is not None)


async def work():
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return await loop.run_in_executor(pool, sum, [1, 2, 3])


print(asyncio.run(work()))
database = sqlite3.connect(tempfile.mkstemp()[1])
database.execute("create table t (a)")
directory = tempfile.TemporaryDirectory()
last = Last("in the script")
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(print, "from a thread")
