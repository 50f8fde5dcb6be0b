"""Problems by depth, each with an id, its value and a prompt: equal seeds mean equal problems."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from itertools import count as count_from
from typing import Any

import numpy as np

from exactformer.domains.algebra import AN_ALGEBRA
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import expect
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import DRAWN, draw_balanced, require_drawable
from exactformer.problems.prompts import instruction, prompt

VERSION = 1  # begins every id; it changes with the law of the draw, the prompt or the columns
BLOCK = 100  # expressions of one draw; another number would give other problems


@dataclass(frozen=True)
class Problem:
    """A row of a data set. The id says how it was drawn: version, domain, seed, depth, number."""

    id: str
    expression: str
    depth: int
    tokens: int
    value: str
    prompt: str

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def problems(
    domain: Domain,
    depths: Iterable[int],
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
    parentheses: float | None = None,
) -> Iterator[Problem]:
    """`count` random problems of each depth, as texts of the domain's kind are drawn, or by
    `draw_balanced`, with that share of parentheses.

    An id names one problem for ever: the i-th of a seed and a depth is the same however many are
    asked for, and whichever other depths. Balanced ones are balanced as a whole, so their count is
    a part of the id.
    """
    expect(domain, Domain, AN_ALGEBRA)
    require_capability("problems", domain)
    instruction(domain)  # or there is no way to ask: this says why
    for name, number in (("seed", seed), ("count", count)):
        if number < 0:
            raise ValueError(f"expected a {name} of 0 or more, found {number}")
    law = f"v{VERSION}-{domain.name}{f'-balanced{count}' if balanced else ''}-seed{seed}"
    law += "" if parentheses is None else f"-parentheses{parentheses}"
    for depth in depths:
        drawn = expressions(domain, depth, count, seed, balanced=balanced, parentheses=parentheses)
        for i, expression in enumerate(drawn):
            yield problem(expression, f"{law}-depth{depth}-{i}")


def expressions(
    domain: Domain,
    depth: int,
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
    parentheses: float | None = None,
) -> Iterator[Expression]:
    """The drawn expressions of one depth."""
    if balanced:
        rng = np.random.default_rng([seed, depth])
        yield from draw_balanced(domain, depth, count, rng, parentheses=parentheses)
        return
    rngs = (np.random.default_rng([seed, depth, block]) for block in count_from())
    law = DRAWN[domain.kind].draw
    share = {} if parentheses is None else {"parentheses": parentheses}
    require_drawable(domain, depth, min(count, BLOCK))
    blocks = (law(domain, depth, BLOCK, rng, **share) for rng in rngs)  # without end
    yield from islice(chain.from_iterable(blocks), count)


def problem(expression: Expression, id: str) -> Problem:
    text = str(expression)
    value, asked = evaluate(expression), prompt(expression.domain, text)
    return Problem(id, text, expression.depth, len(expression), value, asked)
