"""Plans a sweep: every combination of settings, with the seeds in blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from exactformer.domains.domain import Domain
from exactformer.training.kinds import AnyRecipe, recipe_by_method
from exactformer.training.run import require_trainable

AS_IT_IS = "recipe"  # the name of the setting that changes nothing
MOST_SETTINGS = 1_000

Setting = tuple[tuple[str, str], ...]  # names and words, as on a command line


@dataclass(frozen=True)
class Shard:
    """One setting and a block of seeds, which is one run of `exactformer train`."""

    domain: Domain
    setting: Setting
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the shard's folder within that of the sweep."""
        return f"{setting_name(self.setting)}/{self.seeds[0]}-{self.seeds[-1]}"

    @property
    def recipe(self) -> AnyRecipe:
        settings = dict(self.setting)
        return recipe_by_method(settings.pop("method", None), self.domain, settings)


def setting_name(setting: Setting) -> str:
    return ",".join(f"{name}={word}" for name, word in setting) or AS_IT_IS


def plan(
    domain: Domain,
    seeds: Sequence[int],
    settings: Mapping[str, Sequence[str]],
    block: int,
    device: str = "cpu",
) -> list[Shard]:
    """The shards of a sweep. All settings of the first seeds come before the next seeds, so that a
    sweep that is stopped has equally many of each. Every recipe is made once, so that a mistake
    shows here.
    """
    if block < 1:
        raise ValueError(f"expected a block of 1 or more seeds, found {block}")
    combinations: list[Setting] = [
        tuple(zip(settings, words, strict=True)) for words in product(*settings.values())
    ]
    if len(combinations) > MOST_SETTINGS:
        raise ValueError(f"{len(combinations)} settings are more than {MOST_SETTINGS}")
    if len(set(combinations)) < len(combinations):
        raise ValueError("expected different values of a setting, found one twice")
    for setting in combinations:
        if any(set(word) & set("/\\,\0") or word in (".", "..") for _, word in setting):
            raise ValueError(f"expected words without / and commas, found {setting}")
        require_trainable(domain, Shard(domain, setting, ()).recipe, seeds, device)
    blocks = [tuple(seeds[i : i + block]) for i in range(0, len(seeds), block)]
    return [Shard(domain, setting, part) for part in blocks for setting in combinations]
