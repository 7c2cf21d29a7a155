"""Model files that were damaged or forged: bits, pieces, the zip around them, its document, its arrays.

``mutant(whole, other, number)`` is a file made of the two saved ones; the same number makes the same file.
"""

import io
import json
import struct
import zipfile

import numpy as np

SEED = 20261118
DOCUMENT = "model.json"
STRANGE = [  # what stands in a forged document in place of something else
    None, True, False, 0, 1, -1, 2, 7, 10**9, 2**63, 10**30, -(10**18), 0.5, -0.0, 1e308, 5e-324,
    "", "a", "os.system", "builtins.eval", "DeepClassifier", "links.ReLU", "penalties.Evil", "\ud800", "\0",
    "../../x", "x" * 10_000, [], {}, [[]], [1, "a", None], {"a": 1}, {"array": 0}, {"array": -1},
    {"array": 10**9}, {"array": True}, {"scalar": 0}, {"float": "nan"}, {"float": "inf"}, {"float": 3},
    {"tuple": []}, {"tuple": [1, 2]}, {"dict": {}}, {"dict": {"a": []}}, {"dtype": "float32"},
    {"dtype": "object"}, {"objects": [], "shape": [0]}, {"objects": ["a"], "shape": [1]},
    {"objects": [1, None], "shape": [2]}, {"objects": [], "shape": [0, 10**12]},
    {"record": "os.system", "fields": {"command": "true"}}, {"record": "links.ReLU", "fields": {}},
    {"record": "links.LpNorm", "fields": {"p": -1.0, "group": 10**9}},
    {"record": "penalties.L1", "fields": {"alpha": {"array": 0}}},
    {"record": "penalties.Mask", "fields": {"mask": {"array": 1}}},
    {"record": "losses.Softmax", "fields": {}}, {"record": "losses.Poisson", "fields": {}},
    {"record": "Dense", "fields": {}}, {"record": "Network", "fields": {"blocks": {"tuple": []}}},
    {"estimator": "DeepRegressor", "parameters": {}, "fitted": {}},
    {"estimator": "Columns", "parameters": {}, "fitted": {"__class__": 1}},
]  # fmt: skip
TEXTS = [  # what no parser of Python writes
    "NaN", "Infinity", "-Infinity", "1e999", "1" * 5000, "[" * 100_000, "[" * 50 + "]" * 50,
    '{"a":' * 200 + "1" + "}" * 200, "[" + "[]," * 10_000 + "[]]", '{"a":1,"a":2}', '"\\ud800"', "'a'", "",
    "// a", "0x10", "01", "1_000", "\x00", "\ufeff1",
]  # fmt: skip
DTYPES = ("<f4", ">f8", "<i8", "|b1", "<c16", "<U3", "<M8[D]", "<f2", "|S3", "<u2")
HEADERS = (
    b"(5, 5)", b"(10**9,)", b"(99999999999, 9)", b"(-1,)", b"()", b"(1,)", b"[5]", b"(5", b"__import__('os')",
    b"(True, 5)", b"(0, 99)", b"(((((1)))))",
)  # fmt: skip


def mutant(whole, other, number):
    """The bytes of a forged file."""
    rng = np.random.default_rng([SEED, number])
    data = FORGERS[number % len(FORGERS)](whole, other, rng)
    if rng.random() < 0.1:  # and damaged on the way
        data = flipped(data, other, rng)
    return data


def flipped(whole, other, rng):
    """Some bits are the others."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 9))):
        if data:
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def cut(whole, other, rng):
    """The end is missing, or the beginning."""
    at = int(rng.integers(len(whole)))
    return whole[:at] if rng.random() < 0.7 else whole[at:]


def spliced(whole, other, rng):
    """A piece is left out, comes twice, comes from the other file, or is junk."""
    a, b = sorted(int(i) for i in rng.integers(len(whole), size=2))
    c, d = sorted(int(i) for i in rng.integers(len(other), size=2))
    middle = [b"", whole[a:b] * 2, other[c:d], rng.bytes(b - a), bytes(b - a)][int(rng.integers(5))]
    return whole[:a] + middle + whole[b:]


def directory(whole, other, rng):
    """A field of the zip's own records says something else."""
    data = bytearray(whole)
    mark, fields = [
        (b"PK\x03\x04", [(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2), (30, 2)]),
        (b"PK\x01\x02", [(4, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (38, 4), (42, 4)]),
        (b"PK\x05\x06", [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
    ][int(rng.integers(3))]  # fmt: skip
    places = [at for at in range(len(data)) if data.startswith(mark, at)]
    at, (offset, size) = int(rng.choice(places)), fields[int(rng.integers(len(fields)))]
    top = 2 ** (8 * size) - 1
    value = int(rng.choice([0, 1, 9, 99, top // 2 + 1, top - 1, top, int(rng.integers(top))]))
    data[at + offset : at + offset + size] = struct.pack("<H" if size == 2 else "<I", value)
    return bytes(data)


def repacked(whole, other, rng):
    """The same entries in another zip: more of them, fewer, in another order, under other names."""
    entries, kind = unpacked(whole), int(rng.integers(8))
    names = [*entries]
    victim = names[int(rng.integers(len(names)))]
    if kind == 0:
        del entries[victim]
    elif kind == 1:
        entries = {name: entries[name] for name in rng.permutation(names).tolist()}
    elif kind == 2:
        new = ["../x", "/etc/x", "arrays/-1.npy", "arrays/01.npy", "\ud7ff", "a\\b", "x" * 3000, ""]
        entries = {(new[int(rng.integers(len(new)))] if n == victim else n): d for n, d in entries.items()}
    elif kind == 3:
        entries[f"arrays/{len(entries) - 1}.npy"] = entries[victim]
    elif kind == 4:
        entries[victim] = unpacked(other).get(victim, b"")
    elif kind == 5:
        a, b = rng.choice(names, 2)
        entries[a], entries[b] = entries[b], entries[a]
    elif kind == 6:
        entries[victim] = entries[victim] + bytes(int(rng.choice([1, 10, 10**7])))
    else:
        entries[victim] = entries[victim][: int(rng.integers(len(entries[victim]) + 1))]
    packing = int(rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    return packed(entries, packing, b"a comment" if rng.random() < 0.1 else b"")


def forged(whole, other, rng):
    """Something in the document is something else: of another type, elsewhere, missing, or twice as deep."""
    entries = unpacked(whole)
    document = json.loads(entries[DOCUMENT])
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        nodes = [*containers(document)]
        node = nodes[int(rng.integers(len(nodes)))]
        key = (
            list(node)[int(rng.integers(len(node)))]
            if isinstance(node, dict)
            else int(rng.integers(len(node)))
        )
        kind = int(rng.integers(6))
        if kind == 0:
            del node[key]
        elif kind == 1:
            there = nodes[int(rng.integers(len(nodes)))]
            node[key] = json.loads(json.dumps(there))
        elif kind == 2 and isinstance(node, dict):
            node[["a", "__class__", "predict", "_W", "fields", "x" * 99][int(rng.integers(6))]] = node.pop(
                key
            )
        elif kind == 3 and isinstance(node[key], int | float):
            node[key] = [node[key] + 1, -node[key], node[key] * 10**9, str(node[key]), float(node[key])][
                int(rng.integers(5))
            ]
        else:
            node[key] = json.loads(json.dumps(STRANGE[int(rng.integers(len(STRANGE)))]))
        if not any(containers(document)):
            break
    entries[DOCUMENT] = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return packed(entries)


def misspelt(whole, other, rng):
    """The document holds a text that JSON does not know, or knows and should not be asked for."""
    entries = unpacked(whole)
    text = entries[DOCUMENT].decode("utf-8", "surrogatepass")
    marks = [at for at, sign in enumerate(text) if sign in ":,["]
    at = int(rng.choice(marks)) + 1
    end = at + int(rng.integers(30))
    strange = TEXTS[int(rng.integers(len(TEXTS)))]
    entries[DOCUMENT] = (text[:at] + strange + text[end:]).encode("utf-8", "surrogatepass")
    return packed(entries)


def rearrayed(whole, other, rng):
    """An array is of another type or shape, not finite, huge, or says so in its header."""
    entries = unpacked(whole)
    names = [name for name in entries if name.endswith(".npy")]
    name, kind = names[int(rng.integers(len(names)))], int(rng.integers(6))
    array = np.load(io.BytesIO(entries[name]))
    if kind == 0:
        shape = [(), (0,), (array.size,), (1, *array.shape), (9, 9), (2,) * 20][int(rng.integers(6))]
        array = np.resize(array, shape)
    elif kind == 1:
        array = np.ones(array.shape, DTYPES[int(rng.integers(len(DTYPES)))])
    elif kind == 2 and array.dtype.kind == "f":
        value = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -1.0][int(rng.integers(8))]
        array = np.where(rng.random(array.shape) < rng.random(), value, array)
    elif kind == 3:
        array = np.asfortranarray(array)
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    data = file.getvalue()
    if kind == 4:
        shape = str(array.shape).encode()
        data = data.replace(shape, HEADERS[int(rng.integers(len(HEADERS)))].ljust(len(shape))[: len(shape)])
    elif kind == 5:
        data = flipped(data[:128], other, rng) + data[128:]
    entries[name] = data
    return packed(entries)


FORGERS = (flipped, cut, spliced, directory, repacked, forged, forged, misspelt, rearrayed, forged)


def containers(node):
    """All dictionaries and lists of a document that hold something."""
    if isinstance(node, dict | list):
        if node:
            yield node
        for one in node.values() if isinstance(node, dict) else node:
            yield from containers(one)


def unpacked(data):
    """The entries of a zip by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(entries, packing=zipfile.ZIP_DEFLATED, comment=b""):
    """A zip of these entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as whole:
        for name, data in entries.items():
            whole.writestr(
                zipfile.ZipInfo(name), data, packing, 1 if packing == zipfile.ZIP_DEFLATED else None
            )
        whole.comment = comment
    return file.getvalue()


def _document(text):
    """A forger of files with this document."""

    def forge(whole):
        return packed(unpacked(whole) | {DOCUMENT: text})

    return forge


# small files that would unpack to much
BOMBS = (
    _document(b'{"format":1,"x":[' + b"[]," * 10**7 + b"[]]}"),
    _document(b'{"format":1,"x":[' + b"{}," * 10**7 + b"{}]}"),
    _document(b'{"format":1,"x":"' + b"\\u0000" * 10**7 + b'"}'),
    _document(b'{"format":1,"x":[' + b"1," * 2 * 10**7 + b"1]}"),
    _document(b'{"format":1,"x":' + b"[" * 10**7 + b"]" * 10**7 + b"}"),
    _document(b" " * 10**8 + b'{"format":1}'),
    _document(b'{"format":1,"x":' + b"9" * 10**7 + b"}"),
)
