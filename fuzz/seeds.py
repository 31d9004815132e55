#!/usr/bin/env python3
"""Writes the first files of the fuzzers' corpora: small archives in several forms, and small models. Needs only Python."""

import io
import struct
import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SMALL_MODELS = Path(__file__).parent.parent / "fixtures" / "fp16"


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


def ints(name, values):
    return message(5, message(1, name.encode()) + b"".join(number(8, v) for v in values) + number(20, 7))


def node(kind, reads, gives, attributes=b""):
    return message(1, b"".join(message(1, n.encode()) for n in reads) + message(2, gives.encode())
                   + message(4, kind.encode()) + attributes)


def floats(name, dims):
    count = 1
    for d in dims:
        count *= d
    values = b"".join(struct.pack("<f", (7 * i % 11) / 11 - 0.5) for i in range(count))
    return message(5, b"".join(number(1, d) for d in dims) + number(2, 1) + message(8, name.encode()) + message(9, values))


def sized(field, name, dims):
    shape = b"".join(message(1, number(1, d)) for d in dims)
    return message(field, message(1, name.encode()) + message(2, message(1, number(1, 1) + message(2, shape))))


def attention(heads):
    """Attention head by head, keys scaled, one linear layer behind."""
    graph = sized(11, "q", (1, 2, 4)) + sized(11, "k", (1, 8, 4)) + sized(12, "y", (1, 2, 3)) + message(2, b"g")
    graph += floats("s", (1,)) + floats("o", (2 * heads, 3))
    for h in range(heads):
        for part, source in (("a", "q"), ("b", "k"), ("c", "k")):
            graph += floats(f"w{part}{h}", (4, 2)) + floats(f"v{part}{h}", (2,))
            graph += node("MatMul", (source, f"w{part}{h}"), f"m{part}{h}") + node("Add", (f"m{part}{h}", f"v{part}{h}"), f"{part}{h}")
        graph += node("Transpose", (f"b{h}",), f"t{h}", ints("perm", (0, 2, 1))) + node("Mul", (f"t{h}", "s"), f"x{h}")
        graph += node("MatMul", (f"a{h}", f"x{h}"), f"z{h}") + node("Softmax", (f"z{h}",), f"p{h}")
        graph += node("MatMul", (f"p{h}", f"c{h}"), f"r{h}")
    axis = message(5, message(1, b"axis") + number(3, 2) + number(20, 2))
    graph += node("Concat", [f"r{h}" for h in range(heads)], "j", axis) + node("MatMul", ("j", "o"), "y")
    return model(graph)


def layouts():
    """A 1x1 convolution between two transpositions, a norm behind a sum, and an Identity."""
    graph = sized(11, "x", (1, 2, 2, 3)) + sized(12, "y", (1, 2, 2, 4)) + message(2, b"g")
    graph += floats("w", (4, 3, 1, 1)) + floats("b", (4,)) + floats("n", (4,))
    graph += node("Transpose", ("x",), "f", ints("perm", (0, 3, 1, 2))) + node("Conv", ("f", "w", "b"), "c")
    graph += node("Transpose", ("c",), "l", ints("perm", (0, 2, 3, 1))) + node("Add", ("l", "n"), "s")
    graph += node("LayerNormalization", ("s", "n"), "i") + node("Identity", ("i",), "y")
    return model(graph)


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
    yield "attention", attention(2)
    yield "layouts", layouts()


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
    made = dict(models()) | {path.stem: path.read_bytes() for path in sorted(SMALL_MODELS.glob("*.onnx"))}
    targets = {name: made.items() for name in ("external_data", "parse", "passes")}
    for target, files in (targets | {"extraction": archives(made["inside"])}).items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files:
            (folder / name).write_bytes(data)
            print(target, name, len(data), "bytes")


if __name__ == "__main__":
    main()
