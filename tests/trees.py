"""Expressions as plain nested tuples, with the recursive definitions that ours must agree with.

A tree is a value, or (operator, operand, ...). Nothing here uses the code under test but for the
names and arities that an algebra declares.
"""

from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra
from tests.algebras import ALGEBRAS, RULES

Tree = str | tuple  # of trees


def trees(algebra: Algebra, max_leaves: int = 25) -> st.SearchStrategy[Tree]:
    def span(operands: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        kinds = [
            st.tuples(st.just(operator.symbol), *[operands] * arity)
            for operator in algebra.operators
            for arity in operator.arities
        ]
        return st.one_of(*kinds)

    return st.recursive(st.sampled_from(algebra.values), span, max_leaves=max_leaves)


def algebras_with_trees() -> st.SearchStrategy[tuple[Algebra, Tree]]:
    return st.sampled_from(ALGEBRAS).flatmap(lambda a: st.tuples(st.just(a), trees(a)))


def symbols(algebra: Algebra, tree: Tree) -> list[str]:
    """The tokens of a tree in the order of the text."""
    if isinstance(tree, str):
        return [tree]
    operator, *operands = tree
    parts = [symbols(algebra, operand) for operand in operands]
    parts.insert(1 if algebra.notation == "infix" and len(operands) == 2 else 0, [operator])
    return ["(", *(symbol for part in parts for symbol in part), ")"]


def depth(tree: Tree) -> int:
    return 0 if isinstance(tree, str) else 1 + max(map(depth, tree[1:]))


def widest(tree: Tree) -> int:
    """The largest number of operands of any span."""
    return 0 if isinstance(tree, str) else max(len(tree) - 1, *map(widest, tree[1:]))


def value(algebra: Algebra, tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    operator, *operands = tree
    return RULES[algebra.name][operator](*(value(algebra, operand) for operand in operands))


def root(algebra: Algebra, tree: Tree) -> int:
    """Position of the outermost operator among the tokens."""
    if isinstance(tree, str):
        return 0
    infix_pair = algebra.notation == "infix" and len(tree) == 3
    return 1 + len(symbols(algebra, tree[1])) if infix_pair else 1
