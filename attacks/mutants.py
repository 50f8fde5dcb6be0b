"""Damaged files: bytes, JSON and tensors changed at random, by someone who knows the formats."""

import copy
import hashlib
import json
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

LOGITS = "_logits"
TYPES = ("BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64", "F8_E4M3", "X9")
NUMPY = {"I8": "i1", "U8": "u1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F32": "<f4"}
NUMPY |= {"F16": "<f2", "F64": "<f8", "BOOL": "?"}
NUMBERS = (0, -1, 1, 2, 3, 127, 255, 256, 257, 32767, 2**31, 2**63, 10**10, 10**400, -(10**30))
ODD = (None, True, False, 0.5, 2.0, float("nan"), float("inf"), -float("inf"), "", [], {}, [[]])
TEXTS = ("\u200b", "b\u043e\u043elean", "\ud800", "\0", "\r", "\x1b[8m", "\u0301", "a b", "(", "]")
TEXTS += ("boolean", "Boolean", "listops-20", "arithmetic-mod-999", "exact", "sum", "x" * 70_000)
EXTREMES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0**-70, 2.0**-149, 3.4e38, -3.4e38, float("nan"))


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    length = rng.choice((1, 1, 2, 4, 8, 64, 1024))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + length :]
    if kind == 2:
        return data[:at] + data[at : at + length] * rng.choice((2, 3)) + data[at + length :]
    if kind == 3:
        return data[:at] + rng.randbytes(length) + data[at:]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        place = rng.randrange(max(1, len(changed)))
        if changed:
            changed[place] = changed[place] ^ 1 << rng.randrange(8) if kind == 4 else 0
    return bytes(changed)


def mutate_plain(data: Any, rng: Random) -> Any:
    """Plain data with a field somewhere deleted, copied, moved, renamed or given another value."""
    data = copy.deepcopy(data)
    holder, key = _place(data, rng)
    if holder is None:
        return _other(data, rng)
    kind = rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == 1:
        holder[rng.choice(("more", "rule", "unbounded", "table", str(key) + " "))] = holder[key]
    elif kind == 2 and isinstance(holder, list):
        rng.shuffle(holder)
    elif kind == 2:
        other = rng.choice(list(holder))
        holder[key], holder[other] = holder[other], holder[key]
    elif kind == 3 and isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * rng.choice((1, 300, 2_000)))
    else:
        holder[key] = _other(holder[key], rng)
    return data


def _place(data: Any, rng: Random) -> tuple[Any, Any]:
    """Somewhere in the data, at any depth: what holds it and its key; None for the whole."""
    holder, key, value = None, None, data
    while isinstance(value, dict | list) and value and rng.random() < 0.85:
        holder = value
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = holder[key]
    return holder, key


def _other(value: Any, rng: Random) -> Any:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(ODD)
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice(TEXTS)
    if kind == 3:
        nested: Any = []
        for _ in range(rng.choice((3, 100))):
            nested = [nested] if rng.random() < 0.9 else {"a": nested}
        return nested
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + rng.choice((1, -1, 0.5, 2, -value, value))
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + rng.choice(("", "0", "1", "é", value)) + value[at + 1 :]
    return rng.choice(ODD)


def write_json(data: Any, rng: Random) -> str:
    """The data as JSON text, sometimes with a field twice or nested extremely deep."""
    text = json.dumps(data, ensure_ascii=rng.random() < 0.7, indent=rng.choice((None, 1)))
    kind = rng.random()
    if kind < 0.03 and text.startswith("{"):
        name = rng.choice(list(data)) if data else "a"
        text = f"{{{json.dumps(name)}: {json.dumps(rng.choice(ODD))}, {text[1:]}"
    elif kind < 0.05 and text.startswith("{"):
        deep = rng.choice((400, 950, 1_500, 100_000))
        text = f'{text[:-1].rstrip()}, "more": {"[" * deep}{"]" * deep}}}'
    return text


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass
class Tensors:
    """A safetensors file taken apart: what its header says of each tensor, and their bytes."""

    header: dict[str, Any]  # of ours
    entries: dict[str, dict[str, Any]]
    data: bytes

    @classmethod
    def of(cls, file: bytes) -> "Tensors":
        end = 8 + int.from_bytes(file[:8], "little")
        entries = json.loads(file[8:end])
        header = json.loads(entries.pop("__metadata__")["exactformer"])
        return cls(header, entries, file[end:])

    def array(self, name: str) -> np.ndarray:
        entry = self.entries[name]
        start, end = entry["data_offsets"]
        return np.frombuffer(self.data[start:end], NUMPY[entry["dtype"]]).reshape(entry["shape"])

    def replaced(self, arrays: dict[str, np.ndarray]) -> "Tensors":
        """A file with this header and other tensors."""
        names = {np.dtype(kind).str: name for name, kind in NUMPY.items()}
        entries, parts, at = {}, [], 0
        for name, array in arrays.items():
            part = np.ascontiguousarray(array).tobytes()
            offsets = [at, at + len(part)]
            kind = names[array.dtype.str]
            entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
            parts.append(part)
            at += len(part)
        return Tensors(self.header, entries, b"".join(parts))

    def write(self, rng: Random) -> bytes:
        packed = write_json(self.header, rng)
        top = {"__metadata__": {"exactformer": packed}, **self.entries}
        head = as_bytes(json.dumps(top))
        head += b" " * (-len(head) % 8)
        return len(head).to_bytes(8, "little") + head + self.data


def mutate_tensors(file: Tensors, rng: Random) -> Tensors:
    """Other numbers, shapes, types or sets of tensors; consistent in itself, but for a few."""
    if rng.random() < 0.15:  # what the header says, and not what is there
        entries = mutate_plain(file.entries, rng)
        return Tensors(file.header, entries if isinstance(entries, dict) else {}, file.data)
    try:
        arrays = {name: file.array(name).copy() for name in file.entries}
    except (KeyError, TypeError, ValueError):
        return file  # spoiled already
    if not arrays:
        return file
    name = rng.choice(list(arrays))
    array = arrays[name]
    kind = rng.randrange(9)
    if kind <= 3 and array.size:
        _mutate_numbers(array, rng)
    elif kind == 4:
        del arrays[name]
    elif kind == 5:
        other = rng.choice(list(arrays))
        arrays[rng.choice((f"{name}2", "E", "G_R", "bags", f"{name}{LOGITS}"))] = arrays[other]
    elif kind == 6:
        arrays[name] = array.astype(rng.choice(list(NUMPY.values())))
    elif kind == 7 and array.ndim:
        axis, times = rng.randrange(array.ndim), rng.choice((0, 2, 3, 64))
        arrays[name] = np.repeat(array, times, axis)
    elif kind == 8:
        shape = rng.choice([array.T.shape, (array.size,), (*array.shape, 1), (1, *array.shape)])
        arrays[name] = array.reshape(shape)
    return file.replaced(arrays)


def _mutate_numbers(array: np.ndarray, rng: Random) -> None:
    flat = array.reshape(-1)
    for _ in range(rng.choice((1, 1, 1, 3, 20))):
        at = rng.randrange(flat.size)
        kind = rng.randrange(4)
        if array.dtype.kind == "f":
            factor = rng.choice((-1.0, 0.0, 1 + 1e-7, 1.5, 2.0**30, 2.0**-40))
            with np.errstate(all="ignore"):
                flat[at] = rng.choice(EXTREMES) if kind == 0 else flat[at] * np.float32(factor)
        elif array.dtype.kind == "i":
            ends = np.iinfo(array.dtype)
            flat[at] = rng.choice((ends.min, ends.max, -1, 0, 1, 2))
        if kind == 1:
            other = rng.randrange(flat.size)
            flat[at], flat[other] = flat[other], flat[at]


def weights_sha256(file: Tensors) -> str:
    """The hash that the header of a weights file must have, as a forger would compute it."""
    algebra = json.dumps(file.header.get("algebra"), sort_keys=True)
    digest = hashlib.sha256(as_bytes(f"{algebra} {file.header.get('activation')} "))
    for name in sorted(name for name in file.entries if not name.endswith(LOGITS)):
        array = file.array(name)
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def content_sha256(file: Tensors) -> str:
    """The hash that a checkpoint and a baseline's state must have, as a forger would compute it."""
    rest = {name: value for name, value in file.header.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(file.entries):
        array = file.array(name)
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def record_sha256(record: dict[str, Any]) -> str:
    rest = {name: value for name, value in record.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
