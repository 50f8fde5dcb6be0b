"""Token ids for engines: trees of every shape, and what a slip makes of them."""

from random import Random

from exactformer.domains.algebra import CLOSE, OPEN, Algebra

SHAPES = ("balanced", "random", "left", "right", "zigzag", "skewed", "mixed")


def tree(algebra: Algebra, shape: str, size: int, rng: Random) -> list[int]:
    """A tree of about this many values, written without recursion."""
    out: list[int] = []
    tasks: list[tuple[bool, int]] = [(True, size)]  # a subtree of a size, or a token to write
    while tasks:
        is_tree, what = tasks.pop()
        if not is_tree:
            out.append(what)
        elif what <= 1:
            out.append(rng.choice(algebra.value_ids))
        else:
            number = rng.randrange(len(algebra.operators))
            arity = rng.choice(algebra.operators[number].arities)
            parts = [(True, part) for part in _parts(shape, what, arity, rng)]
            parts = algebra.notation.arrange((False, algebra.first_operator + number), parts)
            tasks += [(False, CLOSE), *reversed(parts)]
            out.append(OPEN)
    return out


def _parts(shape: str, size: int, arity: int, rng: Random) -> list[int]:
    """How a size is shared among operands, each of which has at least one."""
    if arity == 1:
        return [size - 1]
    kind = rng.choice(SHAPES[:-1]) if shape == "mixed" else shape
    if kind == "balanced":
        return [size // arity + (i < size % arity) for i in range(arity)]
    spare = max(0, size - arity)
    if kind == "random":
        share = rng.randint(0, spare)
    elif kind == "skewed":  # small parts are likely, as in uniformly random trees
        share = int(spare ** rng.random())
    else:
        share = 0
    small, large = share, spare - share
    place = {"left": 0, "right": arity - 1}.get(kind, rng.randrange(arity))
    parts = [1] * arity
    parts[place] += large
    parts[(place + 1) % arity] += small
    return parts


def spoil(algebra: Algebra, ids: list[int], rng: Random) -> list[int]:
    """One or two tokens dropped, doubled, inserted, replaced or swapped."""
    ids = list(ids)
    for _ in range(rng.choice((1, 1, 2))):
        if not ids:
            break
        i, j = rng.randrange(len(ids)), rng.randrange(len(ids))
        token = rng.randrange(len(algebra.vocabulary))
        match rng.randrange(5):
            case 0:
                del ids[i]
            case 1:
                ids.insert(i, ids[i])
            case 2:
                ids.insert(i, token)
            case 3:
                ids[i] = token
            case _:
                ids[i], ids[j] = ids[j], ids[i]
    return ids
