"""Nothing outside the weights changes a value: neither settings of torch nor matrix units."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from exactformer.api import Model, construct, load
from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.model.circuit import read_tokens, write_tokens
from exactformer.model.feedforward import MLP
from exactformer.model.storage import to_file

MATRIX_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "linear", "matmul"}


class Watch(TorchDispatchMode):
    """Notes the matrix products that go to a library, with the precision of their numbers; with
    `bits`, rounds their factors to so many bits first, as a matrix unit would.
    """

    def __init__(self, bits: int | None = None) -> None:
        super().__init__()
        self.scale = 2.0**bits if bits else None
        self.seen: set[tuple[str, torch.dtype]] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in MATRIX_PRODUCTS:
            self.seen.add((name, args[-1].dtype))
            if self.scale and args[-1].dtype == torch.float32:
                args = (*args[:-2], *(_rounded(a, self.scale) for a in args[-2:]))
        return func(*args, **(kwargs or {}))


def _rounded(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    mantissa, exponent = torch.frexp(tensor)
    return torch.ldexp(torch.round(mantissa * scale) / scale, exponent)


@pytest.mark.parametrize("kind", ["closed", "table", "fitted", "units", "dense"])
def test_no_library_multiplies_what_a_proof_is_about(kind):
    """Real numbers never enter a matrix product of a library."""
    algebra = listops(3) if kind in ("closed", "fitted", "table") else listops(5)
    model = construct(algebra, dense=True) if kind == "dense" else construct(algebra, kind)
    H = torch.randint(0, 3, (50, len(algebra.vocabulary) * model.weights.f.slots)).float()
    X = write_tokens(torch.eye(len(algebra.vocabulary)), model.weights)
    with Watch() as watch:
        model.weights.f(H)
        write_tokens(read_tokens(X, model.weights), model.weights)
    assert not watch.seen


MODELS = {
    **{f"{task}-7520": lambda task=task: load(f"{task}/7520") for task in CATALOG},
    **{f"{task}-closed": lambda task=task: construct(CATALOG[task]()) for task in CATALOG},
    "listops-fitted": lambda: construct(listops(), "fitted"),
    "listops-dense": lambda: construct(listops(), dense=True),
    "listops-units": lambda: construct(listops(4), "units"),
}


@pytest.fixture(scope="module", params=MODELS)
def answered(request):
    model: Model = MODELS[request.param]()
    expressions = list(enumerate_depth(model.algebra, 1))
    expressions = expressions[:: 1 + len(expressions) // 1000]
    return model, expressions, [evaluate(e) for e in expressions]


@pytest.fixture
def problem(answered):
    """With weights of which nothing is remembered, so that the layer runs."""
    model, expressions, values = answered
    return replace(model, weights=replace(model.weights)), expressions, values


@pytest.mark.parametrize("bits", [11, 8], ids=["tf32", "bfloat16"])
def test_matrix_units_change_nothing(problem, bits):
    model, expressions, values = problem
    with Watch(bits) as watch:
        assert model.predict(expressions) == values
    assert watch.seen  # one-hot rows do go through them


def test_those_matrix_units_would_change_a_product_of_float32():
    """Else the test above would show nothing: ListOps' closed form has numbers of 20 bits."""
    f = construct(listops()).weights.f
    assert isinstance(f, MLP)
    H = torch.eye(len(listops().vocabulary)) + 1
    with Watch(8):
        rounded = f.in_training(H)
    assert not torch.equal(rounded, f.in_training(H))


@contextmanager
def attribute(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def precision(value):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(value)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def flushing():
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


ONEDNN = torch.backends.mkldnn.matmul  # pyright: ignore[reportAttributeAccessIssue]

SETTINGS = {
    "high": lambda: precision("high"),
    "medium": lambda: precision("medium"),
    "oneDNN bf16": lambda: attribute(ONEDNN, "fp32_precision", "bf16"),
    "CUDA tf32": lambda: attribute(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "autocast bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", dtype=torch.float16),
    "flushed subnormals": flushing,
    "default float64": lambda: default_dtype(torch.float64),
    "default float16": lambda: default_dtype(torch.float16),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_torch_change_nothing(problem, setting):
    model, expressions, values = problem
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        with SETTINGS[setting]():
            assert model.predict(expressions, dtype) == values


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_are_the_same_whatever_the_default_dtype(name, dtype):
    expected = MODELS[name]()
    with default_dtype(dtype):
        made = MODELS[name]()
        assert (
            to_file(made.algebra, made.weights, {}).sha256
            == to_file(expected.algebra, expected.weights, {}).sha256
        )
