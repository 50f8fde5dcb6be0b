"""The numbers of maps that spans with a hole make up together, against the maps themselves."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.engine.composed import MOST_NUMBERS, NONE, products
from exactformer.engine.layout import Layout
from tests.automata import automaton_of


def some_maps(values: int, given_maps: list[list[int]]) -> np.ndarray:
    maps = np.full((len(given_maps), 16), NONE)
    maps[:, :values] = given_maps
    return maps


@given(st.data())
def test_every_product_is_that_of_its_maps(data):
    values = data.draw(st.integers(1, 3))
    entry = st.sampled_from([*range(values), NONE])
    one = st.lists(entry, min_size=values, max_size=values)
    maps = some_maps(values, data.draw(st.lists(one, min_size=1, max_size=20)))
    found = products(maps, values)
    assert found is not None  # there are no more than (values + 1) ** values
    rows, after = found
    assert list(rows[0, :values]) == list(range(values))
    assert len({row.tobytes() for row in rows}) == len(rows)
    for number, hole in product(range(len(rows)), range(len(maps))):
        expected = [maps[hole, v] if v != NONE else NONE for v in rows[number, :values]]
        assert list(rows[after[number, hole], :values]) == expected
        assert (rows[number, values:] == NONE).all()


@pytest.mark.parametrize("algebra", [boolean(), arithmetic()], ids=lambda a: a.name)
def test_chains_of_spans(algebra):
    """As the kernels read them: step by step through the numbers, and value by value."""
    layout, rng = Layout(automaton_of(algebra)), Random(algebra.name)
    end = len(layout.tables) - 16 * layout.numbers
    rows = layout.tables[end:].reshape(-1, 16)
    maps = layout.tables[layout.table_bytes :][: 16 * layout.holes].reshape(-1, 16)
    after = layout.tables[layout.tables_bytes : end][: layout.numbers * layout.holes]
    assert 1 < layout.numbers <= MOST_NUMBERS
    for _ in range(200):
        number, values = 0, list(range(layout.values))
        for _ in range(rng.randrange(40)):
            hole = rng.randrange(layout.holes)
            number = after[int(number) * layout.holes + hole]
            values = [int(maps[hole, v]) for v in values]
        assert list(rows[number, : layout.values]) == values


def test_too_many_products():
    """Where there are many, or their table is large, none has a number."""
    assert Layout(automaton_of(listops())).numbers == 0
    shift, swap = [1, 2, 3, 4, 5, 6, 0], [1, 0, 2, 3, 4, 5, 6]  # all permutations
    assert products(some_maps(7, [shift, swap]), 7) is None
    few = products(some_maps(7, [shift]), 7)
    assert few is not None
    assert len(few[0]) == 7
    assert products(some_maps(7, [shift] * 2000), 7) is None
