"""The networks, their tasks, and every constant of their training."""

from dataclasses import asdict, dataclass, replace

from exactformer.baselines.crvnn import CRvNN
from exactformer.baselines.looped import Looped
from exactformer.baselines.positions import ENCODINGS
from exactformer.domains.catalog import CATALOG
from exactformer.protocol import recipe as protocol
from exactformer.protocol.state import Network

RATES = (0.001, 0.01)  # the second is that of the paper's own model


@dataclass(frozen=True)
class BaselineRecipe(protocol.Recipe):
    """The protocol's constants, kept with the task and the network."""

    task: str
    network: str  # "learned", "rope", "fire" (looped transformers) or "crvnn"

    @property
    def name(self) -> str:
        rate = "" if self.learning_rate == RATES[0] else f"-{self.learning_rate}"
        return f"{self.task}-{self.network}{rate}"

    def quick(self) -> "BaselineRecipe":
        """A recipe for a short trial: few epochs of a tenth the size; a hundred for Boolean, whose
        epochs are short.
        """
        epochs = {"boolean": 100, "arithmetic": 1, "listops": 1}[self.task]
        return replace(self, epochs=epochs, share=0.1, measured=500)


CRVNN_EPOCHS = 60  # not in the paper


def recipe_for(task: str, network: str, rate: float = RATES[0]) -> BaselineRecipe:
    constants = asdict(replace(protocol.default_recipe(CATALOG[task]()), learning_rate=rate))
    if network == "crvnn":
        constants |= {"epochs": CRVNN_EPOCHS, "batch": 128, "weight_decay": 1e-2}
    return BaselineRecipe(task, network, **constants)


RECIPES: dict[str, BaselineRecipe] = {
    recipe.name: recipe
    for recipe in (
        recipe_for(task, network, rate)
        for task in CATALOG
        for network in (*ENCODINGS, *(["crvnn"] if task == "listops" else []))
        for rate in RATES
    )
}


def network_for(recipe: BaselineRecipe) -> Network:
    algebra = CATALOG[recipe.task]()
    D, values = len(algebra.vocabulary), len(algebra.values)
    if recipe.network == "crvnn":
        return CRvNN(D, values)
    return Looped(D, values, ENCODINGS[recipe.network]())
