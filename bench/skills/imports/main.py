import asyncio
import csv
import decimal
import json
import os
import sqlite3
import statistics
import xml.etree.ElementTree

MODULES = (asyncio, csv, decimal, json, sqlite3, statistics, xml.etree.ElementTree)

with open(os.environ["SANDBOX_OUTPUT"], "w") as f:
    json.dump({"modules": len(MODULES)}, f)
