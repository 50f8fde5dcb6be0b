"""The parts of the logarithmic layer that know nothing of spans, against plain loops."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from exactformer.model.alike import first_alike
from exactformer.model.scan import scan_from_right


@st.composite
def maps(draw) -> list[list[int]]:
    """Some maps on as many values, some of them constant."""
    W = draw(st.integers(1, 5))
    value = st.integers(0, W - 1)
    constant = value.map(lambda v: [v] * W)
    return draw(st.lists(constant | st.lists(value, min_size=W, max_size=W), min_size=1))


@given(maps(), st.data())
def test_the_scan_is_a_loop_from_the_right(rows, data):
    last = data.draw(st.integers(0, len(rows[0]) - 1))
    arriving, expected = last, []
    for row in reversed(rows):
        arriving = row[arriving]
        expected.append(arriving)
    assert scan_from_right(torch.tensor(rows), last).tolist() == expected[::-1]


@st.composite
def stretches(draw) -> list[list[int]]:
    return draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1))


def number_of_one_alike(parts: list[list[int]], numbers: list[int]) -> dict[int, int]:
    """The result of `first_alike` for each stretch, by its number."""
    pairs = list(zip(parts, numbers, strict=True))
    symbols = torch.tensor([symbol for part, _ in pairs for symbol in part])
    ids = torch.tensor([number for part, number in pairs for _ in part])
    return dict(enumerate(first_alike(symbols, ids).tolist(), start=1))


@given(stretches(), st.randoms(use_true_random=False))
def test_stretches_are_alike_where_they_are_equal(parts, random):
    """In whatever order they are numbered."""
    numbers = list(range(1, len(parts) + 1))
    random.shuffle(numbers)
    by_number = dict(zip(numbers, parts, strict=True))
    found = number_of_one_alike(parts, numbers)
    for number, part in by_number.items():
        assert by_number[found[number]] == part
        assert all(found[other] == found[number] for other in numbers if by_number[other] == part)


def test_stretches_with_one_hash_are_still_told_apart():
    odd = 0x9E3779B97F4A7C15 - (1 << 64)
    parts = [[0, 1], [odd, 0], [0, 1]]  # 1 + 2 odd = (1 + odd) + odd
    found = number_of_one_alike(parts, [1, 2, 3])
    assert found[2] == 2
    assert found[1] in (1, 3)
    assert found[3] in (1, 3)
    assert number_of_one_alike([[5], [5, -1]], [1, 2]) == {1: 1, 2: 2}  # -1 adds nothing
