"""One palette: a colour means the same token type in every figure, and on the page."""

from typing import Literal, NamedTuple

from exactformer.domains.domain import Domain, TokenType

Kind = TokenType | Literal["empty"]


class Ink(NamedTuple):
    """Colours of a box: its inside, its edge, and the text in it."""

    fill: str
    edge: str
    text: str


KINDS: dict[Kind, Ink] = {
    "parenthesis": Ink("#cfdef3", "#4a74b0", "#274a7d"),
    "value": Ink("#fdeabc", "#c08a1e", "#7a5200"),
    "operator": Ink("#f8cdbd", "#c4532d", "#8c2f10"),
    "empty": Ink("#ececec", "#c4c4c4", "#8a8a8a"),
}

CLUSTERS: tuple[Ink, ...] = (  # by number, from 1 and then around
    Ink("#c9e8cc", "#3d8c4c", "#1f5c2c"),
    Ink("#f0cbe6", "#a84a94", "#702560"),
    Ink("#c6e6ea", "#2f8894", "#155560"),
    Ink("#dcd3f2", "#7359b8", "#47318a"),
)

# Tasks have a marker too, so that they differ without colour.
TASKS: dict[str, tuple[str, str]] = {
    "arithmetic": ("#332288", "o"),
    "boolean": ("#1b8a7a", "s"),
    "listops": ("#882255", "^"),
}

PLAIN = Ink("#ffffff", "#9a9a9a", "#222222")
MARKED = Ink("#4d4d4d", "#333333", "#ffffff")  # a one in a mask or a discrete matrix
DIVERGING = "PuOr"  # heat maps: negative, zero (white), positive
DIVERGING_ENDS = ("#b35806", "#542788")  # of the same map, a tenth from its ends

NIGHT = "#15181d"  # the page behind everything, in the dark


def kind_of(domain: Domain, symbol: str) -> Kind:
    """The type of a token; anything that is no token counts as the zero vector."""
    if symbol not in domain.vocabulary:
        return "empty"
    return domain.token_type(domain.vocabulary.index(symbol))


def cluster_ink(number: int) -> Ink:
    return CLUSTERS[(number - 1) % len(CLUSTERS)]


def at_night(ink: Ink) -> Ink:
    """The ink on a dark page: a deep fill, a clear edge, and text as light as the fill was."""
    return Ink(mix(ink.edge, NIGHT, 0.68), mix(ink.edge, "#ffffff", 0.12), ink.fill)


def mix(one: str, other: str, share: float) -> str:
    """A mixture of the colours `one` and `other`."""
    parts = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (one, other)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(*parts, strict=True))
