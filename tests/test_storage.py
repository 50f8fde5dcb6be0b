"""Weights on disk: what is read is what was written, and anything else is a clear error."""

import json
import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import boolean, boolean_plain, listops
from exactformer.host.atomic import write_atomically
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.model.storage import to_file
from exactformer.weights.file import WeightFile, pack_header
from tests.algebras import KLEENE, MINUS, TASKS

KINDS = [
    (algebra, kind, dense)
    for algebra in [*TASKS, KLEENE]
    for kind in ("closed", "table", "fitted")
    for dense in (False, True)
    if kind != "fitted" or algebra.name in ("boolean", "listops")
]
KINDS += [(MINUS, "closed", True), (MINUS, "table", False), (listops(None), "units", False)]
KINDS += [(listops(4, "mean", ("MED", "PM", "LAST")), "units", True)]


def tensors(weights: Weights) -> dict[str, torch.Tensor]:
    f = weights.f
    assert isinstance(f, MLP | Table | Units)
    return weights.gates | f.tensors


@pytest.mark.parametrize(("algebra", "kind", "dense"), KINDS)
def test_what_is_read_is_what_was_written(tmp_path, algebra, kind, dense):
    model = construct(algebra, kind, dense=dense)
    path = tmp_path / "model.safetensors"
    model.save(path)
    read = load(path)
    assert read.algebra == model.algebra
    assert read.origin == model.origin
    assert type(read.weights.f) is type(model.weights.f)
    if isinstance(read.weights.f, MLP) and isinstance(model.weights.f, MLP):
        assert read.weights.f.activation == model.weights.f.activation
    before, after = tensors(model.weights), tensors(read.weights)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
        assert tensor.dtype == after[name].dtype, name
    read.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_origin_is_kept(tmp_path):
    model = construct(boolean())
    origin = {"made": "trained", "seed": 7520, "note": "⊢"}
    Model(model.algebra, model.weights, origin).save(tmp_path / "model")
    assert load(tmp_path / "model").origin == origin


def test_safetensors_itself_can_read_it(tmp_path):
    construct(boolean(), "fitted").save(tmp_path / "model")
    arrays = safetensors.numpy.load_file(tmp_path / "model")
    assert set(arrays) == {"G_PE", "W_Q", "W_K", "W_1", "b_1", "W_2", "b_2"}
    assert arrays["G_PE"].tolist() == [1, -1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"U_cap": None}, "unexpected set of tensors"),
        ({"U_cap": np.ones(3, dtype=np.int32)}, r"tensor U_cap: expected the shape \(\d+,\)"),
        ({"U_bias": np.ones(45, dtype=np.float32)}, "tensor U_bias: expected int32"),
        ({"U_readout": np.full((3, 10), 99, dtype=np.int32)}, "expected tokens from 0 to 14"),
        ({"G_R": None}, r"tensor U_in: expected the shape \(15, "),
        ({"G_R": np.ones(3, dtype=np.int8)}, r"tensor G_R: expected the shape \(15,\)"),
        ({"G_R": None, "G_R_logits": np.ones(15, dtype=np.float32)}, "tensor U_in: expected"),
        ({"U_in": np.ones((20, 29), dtype=np.int32)}, r"tensor U_in: expected the shape \(30, "),
        ({"W_1": np.ones((45, 2), dtype=np.float32)}, "unexpected set of tensors"),
    ],
)
def test_units_and_slots_that_do_not_fit(changes, message):
    rules = ("max", "min", "last")
    operators = tuple(Operator.named(rule.upper(), rule, [2, 3], 10) for rule in rules)
    algebra = Algebra("mine", tuple("0123456789"), operators, "prefix")
    arrays: dict[str, Any] = to_file(algebra, construct(algebra, "units").weights, {}).arrays
    changed = {name: array for name, array in (arrays | changes).items() if array is not None}
    with pytest.raises(ValueError, match=message):
        WeightFile(algebra, changed, None)


@pytest.mark.parametrize(
    ("algebra", "changes", "message"),
    [
        (boolean(), {"W_Q": np.ones(28, np.int8)}, r"W_Q: expected the shape \(7, d_h\), found"),
        (boolean(), {"bags": np.ones(7, np.int16)}, r"bags: expected the shape \(rows, 7\), found"),
        (MINUS, {"bags": np.ones(7, np.int16)}, r"bags: expected the shape \(rows, S\*D\), found"),
        (
            boolean_plain(),
            {"directions": np.array(1, np.int16)},
            r"directions: expected the shape \(levels,\), found \(\)",
        ),
        (boolean(), {"directions_logits": np.ones(3, np.float32)}, "there is no directions"),
        (boolean(), {"G_L_logits": np.ones((2, 7, 3), np.float32)}, "there is no G_L"),
    ],
)
def test_a_size_that_no_tensor_gives_goes_by_its_name(algebra, changes, message):
    arrays = to_file(algebra, construct(algebra, "table").weights, {}).arrays
    with pytest.raises(ValueError, match=message):
        WeightFile(algebra, arrays | changes, None)


@pytest.mark.parametrize(
    ("algebra", "name", "wrapping"),
    [
        (boolean(), "outputs", -(2**62) - 1),  # twice that, less one, is 1 where numbers wrap
        (boolean(), "outputs", 2**63 - 1),
        (boolean(), "bags", 2**63 - 1),
        (MINUS, "G_R", -(2**63)),  # and this is its own size
    ],
)
def test_numbers_that_wrap_around_fool_nobody(algebra, name, wrapping):
    arrays = to_file(algebra, construct(algebra, "table").weights, {}).arrays
    wide = arrays[name].astype(np.int64)
    wide[wide == 1] = wrapping
    with pytest.raises(ValueError, match=f"tensor {name}: expected"):
        WeightFile(algebra, arrays | {name: wide}, None)


# Files that are not whole, or not ours


def good() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The tensors and the header of a file of ours."""
    folder = Path(sys.modules["exactformer"].__file__ or "").parent / "weights"
    data = (folder / "boolean" / "fitted.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    return safetensors.numpy.load(data), json.loads(metadata["exactformer"])


def with_tensor(name: str, array: np.ndarray | None, **changes: Any) -> bytes:
    """Our file with one tensor replaced or left out, and with changes in its header."""
    arrays, header = good()
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    return safetensors.numpy.save(arrays, pack_header(header | changes))


def with_header(**changes: Any) -> bytes:
    return with_tensor("G_PE", good()[0]["G_PE"], **changes)


def damaged_bytes(place: int) -> bytes:
    data = bytearray(with_header())
    data[place] ^= 0x40
    return bytes(data)


class Loud:
    """Unpickling this would leave a file behind."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def pickled() -> bytes:
    return pickle.dumps(Loud())


def torch_file(tmp_path: Path) -> bytes:
    torch.save({"W_Q": torch.ones(2)}, tmp_path / "torch")
    return (tmp_path / "torch").read_bytes()


NAN = np.full(7, np.nan, dtype=np.float32)
WHOLE = with_header()

BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "expected a safetensors file"),
    "text": (b"((1|0)&(~0))\n", "expected a safetensors file"),
    "cut in the header": (WHOLE[:100], "expected a safetensors file"),
    "cut in the data": (WHOLE[:-5], "expected a safetensors file"),
    "longer": (WHOLE + b"more", "expected a safetensors file"),
    "header of 2^60 bytes": (b"\0" * 7 + b"\x10", "expected a safetensors file"),
    "pickle": (pickled(), "expected a safetensors file"),
    "a bit of the last tensor": (damaged_bytes(-10), "hash"),
    "a bit of the first tensor": (damaged_bytes(-900), "hash"),
    "foreign": (safetensors.numpy.save({"a": np.ones(3)}), "found 'none of ours'"),
    "foreign with header": (
        safetensors.numpy.save({"a": np.ones(3)}, {"format": "pt"}),
        "found 'none of ours'",
    ),
    "later format": (
        with_header(format="exactformer weights 2"),
        "found 'exactformer weights 2'",
    ),
    "another hash": (with_header(sha256="0" * 64), "hash"),
    "no tensor": (with_tensor("W_K", None), "unexpected set of tensors"),
    "one more": (with_tensor("W_3", NAN), "unexpected set of tensors"),
    "NaN": (with_tensor("b_2", NAN), "b_2: expected finite numbers"),
    "infinity": (with_tensor("b_2", np.full(7, np.inf, np.float32)), "expected finite numbers"),
    "short": (with_tensor("b_2", NAN[:6]), r"b_2: expected the shape \(7,\), found \(6,\)"),
    "wide": (with_tensor("W_K", np.ones((7, 5), np.int8)), r"W_K: expected the shape \(7, 4\)"),
    "scalar W_Q": (with_tensor("W_Q", np.array(1, np.int8)), "W_Q: expected the shape"),
    "scalar W_1": (with_tensor("W_1", np.array(1, np.float32)), "W_1: expected the shape"),
    "empty W_1": (with_tensor("W_1", np.ones((7, 0), np.float32)), "W_1: expected numbers"),
    "half precision": (with_tensor("b_2", np.ones(7, np.float16)), "b_2: expected float32"),
    "double precision": (with_tensor("b_2", np.ones(7)), "b_2: expected float32"),
    "soft routing": (with_tensor("W_K", np.full((7, 4), 0.4)), "W_K: expected int8"),
    "activation": (with_header(activation="tanh"), "'tanh'"),
    "no activation": (with_header(activation=None), "activation"),
    "activation no text": (with_header(activation=["relu"]), "activation: found a list"),
    "no algebra": (with_header(algebra=None), "model: "),
    "algebra a list": (with_header(algebra=[]), "model: "),
    "algebra empty": (with_header(algebra={}), "model: "),
    "header no JSON": (
        safetensors.numpy.save(good()[0], {"exactformer": "{"}),
        "expected a safetensors file",
    ),
    "header a list": (
        safetensors.numpy.save(good()[0], {"exactformer": "[]"}),
        "expected 'exactformer weights 1', found an empty list",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_an_error_that_says_why(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, reason = BAD_FILES[name]
    path = tmp_path / "model"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=reason) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert os.listdir(tmp_path) == ["model"]  # nothing was unpickled


def test_no_table_without_bags(tmp_path):
    model = construct(boolean(), "table")
    assert isinstance(model.weights.f, Table)
    model.save(tmp_path / "model")
    file = WeightFile.read(tmp_path / "model")
    twice = np.concatenate([file.arrays["bags"]] * 2), np.concatenate([file.arrays["outputs"]] * 2)
    with pytest.raises(ValueError, match="twice"):
        WeightFile(boolean(), file.arrays | {"bags": twice[0], "outputs": twice[1]}, None)


@pytest.mark.parametrize("activation", ["relu", "\ud800", 0, [], False])
def test_no_table_with_an_activation(activation):
    arrays = to_file(boolean(), construct(boolean(), "table").weights, {}).arrays
    with pytest.raises(ValueError, match="activation: found"):
        WeightFile(boolean(), arrays, activation)


def test_a_row_that_hides_another_by_its_hash_is_refused():
    """Rows are looked up by a hash: one more row, of no bag, could otherwise shadow a real one."""
    f = construct(boolean(), "table").weights.f
    assert isinstance(f, Table)
    odd = 0x9E3779B97F4A7C15 - (1 << 64)
    shadow = f.bags[:1].to(torch.int64)
    shadow[0, 1] += 1
    shadow[0, 0] -= odd  # the hash is the sum of odd^k times entry k, modulo 2^64
    bags = torch.cat([shadow, f.bags])
    with pytest.raises(ValueError, match="hash"):
        Table(bags, torch.cat([torch.zeros_like(f.outputs[:1]), f.outputs]))


@pytest.mark.parametrize("name", ["pickle", "torch", "cut in the data", "missing", "folder"])
def test_the_command_line_refuses_a_bad_file(tmp_path, name):
    path = tmp_path / "model"
    if name == "folder":
        path.mkdir()
    elif name == "torch":
        path.write_bytes(torch_file(tmp_path))
    elif name != "missing":
        path.write_bytes(BAD_FILES[name][0])
    command = [sys.executable, "-m", "exactformer", "eval", "boolean", "(~1)", "--weights", path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert str(path) in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("name", ["missing", "folder"])
def test_reading_no_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises((ValueError, OSError), match=name):
        load(tmp_path / name)
    with pytest.raises((ValueError, OSError)):
        WeightFile.read(tmp_path / name)


# Writing


LIMITED = """if True:
    import resource, signal, sys
    from exactformer.api import construct
    from exactformer.domains.catalog import listops
    model = construct(listops(), "fitted")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        model.save(sys.argv[1])
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.parametrize("existed", [True, False])
def test_a_write_that_breaks_off_leaves_the_old_file_and_no_other(tmp_path, existed):
    """A disk that fills up in the middle: here, a limit of the process on the size of files."""
    assert resource.RLIMIT_FSIZE
    path = tmp_path / "model"
    if existed:
        path.write_bytes(b"old")
    command = [sys.executable, "-c", LIMITED, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.stdout == "File too large\n", result.stderr
    assert [p.name for p in tmp_path.iterdir()] == (["model"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


def test_a_rename_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "inside").write_text("kept")
    with pytest.raises((OSError, ValueError), match="model"):
        construct(boolean()).save(tmp_path / "model")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "inside").read_text() == "kept"


def test_only_files_are_replaced(tmp_path):
    """A device or a pipe, such as /dev/null, must not be turned into a file by renaming over it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((OSError, ValueError), match="pipe"):
        write_atomically(tmp_path / "pipe", b"data")
    assert (tmp_path / "pipe").is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        construct(boolean()).save(tmp_path / "nowhere" / "model")


def test_others_may_read_what_was_written(tmp_path):
    construct(boolean()).save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o644


def test_an_edited_algebra_in_the_header_is_noticed(tmp_path):
    path = tmp_path / "boolean.safetensors"
    construct(boolean()).save(path)
    data = path.read_bytes()
    entry = rb"[\"1\", \"0\", \"0\"]"  # 1&0 is 0, as the header spells it
    assert entry in data
    path.write_bytes(data.replace(entry, rb"[\"1\", \"0\", \"1\"]", 1))
    with pytest.raises(ValueError, match="hash"):
        load(path)
