"""Algebras of more than 400 cases: what the default recipe is for them, and that it trains them."""

from dataclasses import replace

import pytest

import exactformer as ef
from exactformer.domains.catalog import arithmetic
from exactformer.training.recipe import Staged, recipe_for, sure_recipe_for
from exactformer.training.run import train_seeds
from exactformer.verify import verify


def test_an_algebra_just_past_400_cases_is_learned_and_certified(tmp_path):
    (result,) = train_seeds(arithmetic(20), [1100], out=tmp_path)
    assert result.exact
    assert verify(tmp_path / "1100.proof.json", tmp_path / "1100.safetensors").exact
    assert ef.load(tmp_path / "1100.safetensors")("((19*19)+(7*8))") == "17"


def test_smaller_algebras_and_wider_operators_keep_their_recipes():
    assert recipe_for(ef.boolean()) == Staged(steps=1_000)
    some = Staged(steps=8_000, give_up=(1_000, 0.55), polish_steps=600, polish_rate=0.02)
    assert recipe_for(ef.arithmetic()) == recipe_for(arithmetic(19)) == some
    assert recipe_for(ef.listops()) == Staged(steps=3_000, batch=160)
    sure = replace(recipe_for(ef.listops()), open_bits=0.3, feedforward_rate=0.03, steps=6_000)
    assert sure_recipe_for(ef.listops()) == sure


@pytest.mark.parametrize(
    ("modulus", "width", "batch"), [(20, 192, 512), (64, 512, 520), (97, 512, 1_188)]
)
def test_constants_depend_on_the_size_alone(modulus, width, batch):
    recipe = recipe_for(arithmetic(modulus))
    assert (recipe.width, recipe.batch, recipe.activation) == (width, batch, "relu")
    assert sure_recipe_for(arithmetic(modulus)) == replace(recipe, steps=6_000)


def test_a_large_seed_that_fails_ends_with_a_verdict():
    """Its numbers are too long to be checked as they are."""
    algebra = arithmetic(43)
    recipe = replace(recipe_for(algebra), steps=1, attempts=1, look_every=1)
    (result,) = train_seeds(algebra, [1], recipe=recipe)
    assert result.record["verdict"] == "inexact"


def test_what_no_certificate_could_list_is_refused_before_it_is_trained(tmp_path):
    recipe = replace(recipe_for(arithmetic(97)), width=2_000)
    with pytest.raises(ValueError, match="certificate for 2000 units and 9506 cases"):
        train_seeds(arithmetic(97), [1], recipe=recipe, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
