"""The built-in rearrangements: six tasks of the Chomsky-hierarchy benchmark, in its symbols."""

from collections.abc import Callable, Mapping
from functools import cache

from exactformer.domains.rearrangements import Rearrangement

BITS = ("0", "1")


@cache
def reverse_string() -> Rearrangement:
    """A text of bits from its end."""
    return Rearrangement("reverse-string", BITS, "reversed")


@cache
def duplicate_string() -> Rearrangement:
    """A text of bits twice."""
    return Rearrangement("duplicate-string", BITS, "twice")


@cache
def odds_first() -> Rearrangement:
    """The 2nd, the 4th bit and so on, then the 1st, the 3rd and so on: as the benchmark's program
    has it, whose text says that the 1st comes first.
    """
    return Rearrangement("odds-first", BITS, "alternate")


@cache
def bucket_sort() -> Rearrangement:
    """The digits 0 to 4 in order."""
    return Rearrangement("bucket-sort", tuple("01234"), "sorted")


@cache
def stack_manipulation() -> Rearrangement:
    """A stack: what is left on it, from its top, then `2`. The bits that are on it at first come
    first, the lowest one at the front; then `2` takes the top off, if there is one, `3` puts a 0
    there and `4` a 1. A bit that comes later is put there, too.
    """
    writes = (("0", "0"), ("1", "1"), ("3", "0"), ("4", "1"))
    return Rearrangement("stack-manipulation", tuple("01234"), "stack", writes, end="2")


@cache
def missing_duplicate_string() -> Rearrangement:
    """The bit that is missing where `2` stands in a text of bits that is there twice; `3` is
    skipped. Where several are missing, these, as they come.
    """
    writes = (("0 0", ""), ("1 1", ""), ("0 2", "0"), ("1 2", "1"))
    return Rearrangement("missing-duplicate-string", tuple("0123"), "halves", writes)


REARRANGEMENTS: Mapping[str, Callable[[], Rearrangement]] = {
    "reverse-string": reverse_string,
    "duplicate-string": duplicate_string,
    "odds-first": odds_first,
    "bucket-sort": bucket_sort,
    "stack-manipulation": stack_manipulation,
    "missing-duplicate-string": missing_duplicate_string,
}
