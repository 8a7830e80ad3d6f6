#!/usr/bin/env python3
"""Markdown to one HTML page; the page is parsed again to tell what is in it."""

import argparse
import html
import json
import os
import sys
from pathlib import Path

import markdown
from bs4 import BeautifulSoup

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>table {{ border-collapse: collapse }} td, th {{ border: 1px solid #999 }}</style>
</head><body>
{toc}{body}
</body></html>
"""


def convert(text, title, toc):
    converter = markdown.Markdown(
        extensions=["tables", "fenced_code", "footnotes", "def_list", "toc"], output_format="html"
    )
    body = converter.convert(text)
    return PAGE.format(title=html.escape(title), toc=converter.toc if toc else "", body=body)


def describe(page):
    soup = BeautifulSoup(page, "html.parser")
    ids = {tag["id"] for tag in soup.find_all(id=True)}
    links = [a["href"] for a in soup.find_all("a", href=True)]
    outside = [link for link in links if not link.startswith("#")]
    return {
        "title": soup.title.string,
        "headings": [f"{h.name} {h.get_text()}" for h in soup.find_all(["h1", "h2", "h3"])],
        "cells": [[c.get_text() for c in row.find_all(["td", "th"])] for row in soup.find_all("tr")],
        "code": [c.get_text() for c in soup.select("pre code")],
        "links": outside,
        "broken": [link for link in links if link.startswith("#") and link[1:] not in ids],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", help="an input file")
    parser.add_argument("--title", default="Document")
    parser.add_argument("--toc", action="store_true", help="a table of contents")
    args = parser.parse_args()
    source = Path(os.environ.get("SANDBOX_INPUT_DIR", ".")) / args.document
    if not source.exists():
        sys.exit(f"there is no input file {args.document}")
    page = convert(source.read_text(encoding="utf-8"), args.title, args.toc)
    target = Path(os.environ.get("SANDBOX_FILES_DIR", ".")) / (source.stem + ".html")
    target.write_text(page, encoding="utf-8")
    print(json.dumps(describe(target.read_text(encoding="utf-8")), ensure_ascii=False))


if __name__ == "__main__":
    main()
