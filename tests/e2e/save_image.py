# SPDX-License-Identifier: Apache-2.0
"""Saves a folder as a container image, as tools do it.

    save_image.py docker|oci FOLDER FILE [FOLDER2…]

Each further folder is a layer over those before it: a file whose name begins with ".wh." says that
what has the rest of its name is gone. docker is what `docker save` writes, oci an OCI layout with a
compressed layer and an index for two platforms.
"""
import gzip
import hashlib
import io
import json
import sys
import tarfile

TITLE = "example.org/tools:1"


def digest(data):
    return hashlib.sha256(data).hexdigest()


def as_json(value):
    return json.dumps(value).encode()


def tar_of(folder):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder, arcname=".")
    return out.getvalue()


def config_of(layers, cpu="amd64"):
    return as_json({"architecture": cpu, "os": "linux", "config": {"Cmd": ["bash"]},
                    "rootfs": {"type": "layers",
                               "diff_ids": ["sha256:" + digest(layer) for layer in layers]}})


def docker(layers):
    config = config_of(layers)
    files = {f"{digest(layer)}/layer.tar": layer for layer in layers}
    files[f"{digest(config)}.json"] = config
    files["manifest.json"] = as_json([{"Config": f"{digest(config)}.json", "RepoTags": [TITLE],
                                       "Layers": [f"{digest(layer)}/layer.tar" for layer in layers]}])
    return files


def oci(layers):
    files = {}

    def blob(kind, data):
        files[f"blobs/sha256/{digest(data)}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest(data)}",
                "size": len(data)}

    def manifest(cpu):
        return blob("manifest.v1+json", as_json({
            "schemaVersion": 2, "config": blob("config.v1+json", config_of(layers, cpu)),
            "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, 1)) for layer in layers]}))

    entries = [dict(manifest(cpu), platform={"os": "linux", "architecture": cpu},
                    annotations={"org.opencontainers.image.ref.name": TITLE})
               for cpu in ("arm64", "amd64")]
    index = blob("index.v1+json", as_json({"schemaVersion": 2, "manifests": entries}))
    files["index.json"] = as_json({"schemaVersion": 2, "manifests": [index]})
    files["oci-layout"] = as_json({"imageLayoutVersion": "1.0.0"})
    return files


def main():
    kind, first, file, *more = sys.argv[1:]
    layers = [tar_of(folder) for folder in (first, *more)]
    with tarfile.open(file, "w") as tar:
        for name, data in {"docker": docker, "oci": oci}[kind](layers).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


main()
