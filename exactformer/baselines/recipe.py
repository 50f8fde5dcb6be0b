"""Which network is trained on which task, and every constant of its training."""

from dataclasses import asdict, dataclass, replace

from exactformer.baselines.crvnn import CRvNN
from exactformer.baselines.looped import Looped
from exactformer.baselines.positions import ENCODINGS
from exactformer.domains.catalog import CATALOG
from exactformer.protocol import recipe as protocol
from exactformer.protocol.state import Network


@dataclass(frozen=True)
class Recipe(protocol.Recipe):
    """The protocol's constants, kept with the task and the network."""

    task: str
    network: str  # "learned", "rope", "fire" (looped transformers) or "crvnn"

    @property
    def name(self) -> str:
        return f"{self.task}-{self.network}"

    def quick(self) -> "Recipe":
        """A short trial: few epochs, a tenth of each. Boolean's are short, so it has a hundred."""
        epochs = {"boolean": 100, "arithmetic": 1, "listops": 1}[self.task]
        return replace(self, epochs=epochs, share=0.1, measured=500)


CRVNN_EPOCHS = 60  # not in the paper


def recipe_for(task: str, network: str) -> Recipe:
    constants = asdict(protocol.default_recipe(CATALOG[task]()))
    if network == "crvnn":
        constants |= {"epochs": CRVNN_EPOCHS, "batch": 128, "weight_decay": 1e-2}
    return Recipe(task, network, **constants)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        *(recipe_for(task, encoding) for task in CATALOG for encoding in ENCODINGS),
        recipe_for("listops", "crvnn"),
    )
}


def network_for(recipe: Recipe) -> Network:
    algebra = CATALOG[recipe.task]()
    D, values = len(algebra.vocabulary), len(algebra.values)
    if recipe.network == "crvnn":
        return CRvNN(D, values)
    return Looped(D, values, ENCODINGS[recipe.network]())
