"""Reads the native syntax: text as expressions are printed, with free white space."""

import numpy as np

from exactformer.domains.algebra import AN_ALGEBRA
from exactformer.domains.data import expect, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode, quote
from exactformer.domains.expression import Expression
from exactformer.domains.grammar import UNKNOWN


def parse(domain: Domain, text: str | bytes, *, first_line: int = 1) -> Expression:
    """Read one expression; white space is free. Raises `ExpressionError`.

    `first_line` is the line number of the text in the file it came from.
    """
    expect(domain, Domain, AN_ALGEBRA)
    expect(text, (str, bytes), "the text of an expression")
    text = decode(text, first_line)
    words = domain.lexicon.scanner.findall(text)
    lookup = domain.token_ids
    ids = [lookup.get(word, UNKNOWN) for word in words]
    if failure := domain.first_error(ids, words):
        place, problem = failure
        matches = domain.lexicon.scanner.finditer(text)  # words carry no offsets, to be quick
        match = next((match for i, match in enumerate(matches) if i == place), None)
        found = describe(domain, match[0] if match else None, empty=not words)
        offset = match.start() if match else len(text.rstrip())
        raise ExpressionError(problem.replace("{found}", found), text, offset, first_line)
    return Expression(domain, np.array(ids, dtype=np.int16))


def describe(domain: Domain, word: str | None, *, empty: bool) -> str:
    """The end of an error message: the word that was found, the end of the text, or no text."""
    if word is None:
        return "found no text" if empty else "found the end of the text"
    if word in domain.token_ids:
        return f"found {quote(word)}"
    names = [symbol for symbol in domain.token_ids if symbol.isalpha()]
    return f"found {quote(word)}, which is no token{suggestion(word.upper(), names)}"
