#!/usr/bin/env python3
"""Writes the first files of the fuzzers' corpora: small archives in several forms, and small models. Needs only Python."""

import io
import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def external(location, offset, length):
    entries = (("location", location), ("offset", offset), ("length", length))
    return b"".join(message(13, message(1, k.encode()) + message(2, str(v).encode())) for k, v in entries)


def tensor(name, more):
    return number(1, 16) + number(2, 1) + message(8, name.encode()) + more


def model(graph):
    return number(1, 8) + message(7, graph) + message(8, number(2, 17))


def port(field, name):
    dims = message(1, number(1, 1)) + message(1, message(2, b"n"))
    return message(field, message(1, name) + message(2, message(1, number(1, 1) + message(2, dims))))


def models():
    outside = tensor("w", external("weights.data", 0, 64) + number(14, 1))
    node = message(1, b"x") + message(1, b"w") + message(2, b"y") + message(4, b"Add")
    whole = message(1, node) + message(2, b"g") + message(5, outside) + port(11, b"x") + port(12, b"y")
    yield "outside", model(whole)
    held = message(5, message(1, b"value") + message(5, outside) + number(20, 4))
    constant = message(2, b"w") + message(4, b"Constant") + held
    yield "attribute", model(message(1, constant) + message(2, b"g"))
    branch = message(5, message(1, b"then_branch") + message(6, message(5, outside)) + number(20, 5))
    yield "branch", model(message(1, message(4, b"If") + branch) + message(2, b"g"))
    yield "inside", model(message(5, tensor("w", message(9, bytes(64)))) + message(2, b"g"))
    yield "empty", model(message(2, b"g"))


def archives(graph):
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        for folder in ("", "release/"):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", method) as z:
                if folder:
                    z.mkdir(folder[:-1])
                z.writestr(folder + "graph.onnx", graph)
                z.writestr(folder + "weights.data", bytes(64))
                z.writestr(folder + "metadata.json", "{}")
            yield f"{name}-{len(folder)}", out.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z, z.open("graph.onnx", "w", force_zip64=True) as member:
        member.write(graph)
    yield "zip64", out.getvalue()


def main():
    made = dict(models())
    for target, files in (("external_data", made.items()), ("extraction", archives(made["inside"]))):
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files:
            (folder / name).write_bytes(data)
            print(target, name, len(data), "bytes")


if __name__ == "__main__":
    main()
