"""A test of the application as its users see it."""

import concurrent.futures
import json
import subprocess
import sys

import requests
from bs4 import BeautifulSoup

base = f"http://127.0.0.1:{sys.argv[1]}"
with requests.Session() as session:
    created = [session.post(f"{base}/api/items", json={"name": name}) for name in ("tea", "Käse")]
    refused = session.post(f"{base}/api/items", json={"color": "red"})
    missing = session.get(f"{base}/nowhere")
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    counts = set(pool.map(lambda _: len(requests.get(f"{base}/api/items", timeout=120).json()), range(8)))
page = BeautifulSoup(requests.get(base, timeout=120).text, "html.parser")
by_curl = subprocess.run(
    ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{content_type}", f"{base}/api/items"],
    capture_output=True, text=True, check=True,
).stdout
print(json.dumps({
    "created": [answer.json()["id"] for answer in created],
    "statuses": [answer.status_code for answer in (*created, refused, missing)],
    "items_seen_by_8_requests": sorted(counts),
    "page": [li.text for li in page.find_all("li")],
    "curl": by_curl,
}))
