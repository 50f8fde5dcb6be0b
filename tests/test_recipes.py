"""Recipes with settings: as words or as they are, and those that cannot be."""

from dataclasses import replace

import pytest

from exactformer.domains.catalog import boolean
from exactformer.model.feedforward import MLP
from exactformer.training.kinds import recipe_by_method
from exactformer.training.recipe import Staged, recipe_for
from exactformer.training.state import begin, export


def test_recipes():
    recipe = recipe_for(boolean())
    settings = {"estimator": None, "attempts": None}
    assert recipe_by_method("staged", boolean(), settings) == recipe
    settings = {"estimator": "search", "attempts": "2", "spread": "0.2"}  # words, or not
    changed = recipe_by_method("staged", boolean(), settings)
    assert changed == replace(recipe, estimator="search", attempts=2, spread=0.2)
    narrow = recipe_by_method("staged", boolean(), {"width": "6", "give_up": "none"})
    assert isinstance(narrow, Staged)
    assert narrow.give_up is None
    state = begin(boolean(), narrow, [1])
    weights = export(boolean(), state.tensors, 0, narrow.width)
    assert isinstance(weights.f, MLP)
    assert weights.f.W_1.shape == (7, 6)
    assert weights.f.W_1.all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("estimator", "gradient", "expected one of search, score"),
        ("attempts", "2.5", "expected a whole number for attempts, found '2.5'"),
        ("spread", "nan", "spread cannot be set to 'nan'"),
        ("give_up", "100", "give_up cannot be set to '100'"),
        ("betas", "0.9", "betas cannot be set to '0.9'"),
        ("rate", "0.1", "the method staged has no 'rate'"),
    ],
)
def test_settings_that_are_none(name, value, message):
    with pytest.raises(ValueError, match=message):
        recipe_by_method("staged", boolean(), {name: value})
