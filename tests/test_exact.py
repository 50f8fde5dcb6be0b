"""Sums of products in float64, row by row."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from exactformer.model import exact
from exactformer.model.exact import RowByRow, in_float32, product


@given(st.integers(0, 2**32 - 1), st.integers(0, 200), st.integers(1, 20), st.integers(1, 20))
def test_a_product_is_the_matrix_product(seed, n, d, e):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(-3, 4, (n, d), generator=generator)
    W = torch.randint(-1000, 1000, (d, e), generator=generator)
    assert torch.equal(product(rows, W), (rows @ W).double())
    assert torch.equal(product(rows.float(), W.float()), (rows @ W).double())


def counting(calls: list[int]):
    """Squares each row's sum, and notes how many rows it was given."""

    def f(rows: torch.Tensor) -> torch.Tensor:
        calls.append(len(rows))
        return rows.double().sum(-1, keepdim=True).square()

    return f


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 6))
def test_every_row_gets_its_own_result(seed, n, d):
    generator = torch.Generator().manual_seed(seed)
    calls: list[int] = []
    apply = RowByRow(counting(calls))
    for dtype in (torch.float32, torch.bfloat16, torch.float32):
        for _ in range(3):
            H = torch.randint(0, 3, (2, n, d), generator=generator).to(dtype)
            assert torch.equal(apply(H), H.double().sum(-1, keepdim=True).square())


def test_a_row_is_computed_once():
    calls: list[int] = []
    apply = RowByRow(counting(calls))
    H = torch.randint(0, 2, (1000, 3)).float()
    apply(H)
    assert sum(calls) <= 2**3 + 1
    first = sum(calls)
    apply(H)
    assert sum(calls) == first


def test_rows_of_one_number_are_told_apart():
    apply = RowByRow(counting([]))
    H = torch.randint(0, 3, (100, 4)).float()
    apply(H[:0])
    assert apply.known is not None
    apply.known = apply.known._replace(factors=torch.zeros(4).double())
    for _ in range(2):
        assert torch.equal(apply(H), H.double().sum(-1, keepdim=True).square())


@given(st.floats(allow_nan=False))
def test_float32_keeps_the_sign(number):
    kept = in_float32(torch.tensor([number], dtype=torch.float64))
    assert kept.dtype == torch.float32
    assert torch.isfinite(kept).all()
    assert bool(kept > 0) == (number > 0)
    assert bool(kept < 0) == (number < 0)


def test_what_is_remembered_has_a_bound(monkeypatch):
    monkeypatch.setattr(exact, "MOST_REMEMBERED", 10)
    apply = RowByRow(counting([]))
    for start in range(0, 100, 7):
        H = torch.arange(start, start + 7).float().unsqueeze(-1)
        assert torch.equal(apply(H), H.double().square())
        assert apply.known is not None
        assert len(apply.known.numbers) <= 10


def test_a_gradient_goes_through():
    apply = RowByRow(counting([]))
    H = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    apply(H)
    H.requires_grad_()
    apply(H).sum().backward()
    assert H.grad is not None
    assert H.grad.tolist() == [[6, 6], [0, 0]]
