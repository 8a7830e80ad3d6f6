# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel for a test, without any tool of Python's packaging.

    make_wheel.py FOLDER NAME VERSION [--tag TAG] [--requires REQUIREMENT]… [--file PATH=TEXT]…
                  [--add PATH=FILE]…

writes FOLDER/NAME-VERSION-TAG.whl with the files, METADATA, WHEEL and RECORD.
"""
import argparse
import pathlib
import zipfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("version")
    parser.add_argument("--tag", default="py3-none-any")
    parser.add_argument("--requires", action="append", default=[])
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--add", action="append", default=[])
    args = parser.parse_args()
    info = f"{args.name}-{args.version}.dist-info"
    files = {}
    for given in args.file:
        path, _, text = given.partition("=")
        files[path] = text.encode()
    for given in args.add:
        path, _, source = given.partition("=")
        files[path] = pathlib.Path(source).read_bytes()
    files[f"{info}/METADATA"] = "\n".join(
        ["Metadata-Version: 2.1", f"Name: {args.name}", f"Version: {args.version}",
         *(f"Requires-Dist: {text}" for text in args.requires), "", "A package of a test.", ""]).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nTag: {args.tag}\n".encode()
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in files).encode()
    args.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(args.folder / f"{args.name}-{args.version}-{args.tag}.whl", "w",
                         zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)


main()
