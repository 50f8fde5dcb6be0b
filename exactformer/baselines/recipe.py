"""Which network is trained on which task, and every constant of its training."""

from dataclasses import dataclass, replace

from exactformer.baselines.crvnn import CRvNN
from exactformer.baselines.looped import Looped
from exactformer.baselines.positions import ENCODINGS
from exactformer.baselines.state import Network
from exactformer.domains.catalog import CATALOG

RATES = (0.001, 0.01)  # the second is that of the paper's own model
FITTED = 0.95  # the training accuracy, at both depths, from which on a seed counts


@dataclass(frozen=True)
class Recipe:
    task: str
    network: str  # "learned", "rope", "fire" (looped transformers) or "crvnn"
    epochs: int
    batch: int = 500
    learning_rate: float = RATES[0]
    weight_decay: float = 0.0
    clip: float = 1.0
    warm_up: float = 0.1  # fraction of the steps in which the rate rises,
    warm_up_from: float = 0.3  # from this fraction of it
    cosine_to: float = 0.05  # and then falls to this fraction
    sampled: int = 0  # depth-2 problems drawn afresh each epoch; 0 takes all there are
    measured: int = 10_000  # at most so many problems of a depth measure the training accuracy
    share: float = 1.0  # fraction of an epoch's batches that are used

    @property
    def name(self) -> str:
        rate = "" if self.learning_rate == RATES[0] else f"-{self.learning_rate}"
        return f"{self.task}-{self.network}{rate}"

    def quick(self) -> "Recipe":
        """A short trial: few epochs, a tenth of each. Boolean's are short, so it has a hundred."""
        epochs = {"boolean": 100, "arithmetic": 1, "listops": 1}[self.task]
        return replace(self, epochs=epochs, share=0.1, measured=500)


EPOCHS = {"arithmetic": 50, "boolean": 1000, "listops": 300}  # the paper's
CRVNN_EPOCHS = 60  # not in the paper


def recipe_for(task: str, network: str, rate: float = RATES[0]) -> Recipe:
    sampled = 8800 if task == "listops" else 0
    if network == "crvnn":
        decay = 1e-2
        return Recipe(task, network, CRVNN_EPOCHS, 128, rate, weight_decay=decay, sampled=sampled)
    return Recipe(task, network, EPOCHS[task], learning_rate=rate, sampled=sampled)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        recipe_for(task, network, rate)
        for task in CATALOG
        for network in (*ENCODINGS, *(["crvnn"] if task == "listops" else []))
        for rate in RATES
    )
}


def network_for(recipe: Recipe) -> Network:
    algebra = CATALOG[recipe.task]()
    D, values = len(algebra.vocabulary), len(algebra.values)
    if recipe.network == "crvnn":
        return CRvNN(D, values)
    return Looped(D, values, ENCODINGS[recipe.network]())
