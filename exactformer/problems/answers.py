"""The answer in a language model's reply: the one rule, by which every reply is scored.

`reasoned` reads replies that think aloud: the last value that follows an answer marker ("answer
is", "answer:", "=", "<answer>…</answer>", "\\boxed{…}"), else the last value in the text. `alone`
takes a value that is the whole first line, and nothing else.

Where digits make up numbers, a value is a number of any length: leading zeros, and commas between
thousands, are left out.

A value is written in any spelling that the algebra accepts, and is no part of a longer word or
number: none of `13`, `3.5`, `-3` and `1/3` contains the value 3. What precedes a closing
`</think>` is left out if a value follows it; so is what follows once a reply repeats the question.

Exported tasks have a copy of this file, so that it uses nothing but the standard library.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

Pattern = re.Pattern[str]
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$|,))")
QUESTION = "Evaluate the expression, where"  # begins every prompt
MARKER = re.compile(r"answer(?:\s+is\b|\W{0,4}:)|(?<![<>!])[=≡](?!>)|<answer>|\\boxed\s*\{", re.I)
# What may stand between a marker and its value: white space, quotes, Markdown and LaTeX.
DECORATION = r"""(?:[\s:*_`$"'“”‘’{}]|\\[a-zA-Z]+(?=\W)|\\[(\[])*"""


def reasoned(reply: str, values: Mapping[str, str], numerals: bool = False) -> str | None:
    """The value that a reply arrives at, or None; `values` has the value of each spelling. With
    `numerals`, digits among the spellings make up numbers.
    """
    value, after_marker = _patterns(tuple(values), numerals)
    reply = _with_ascii_digits(reply, values)
    reply = THOUSANDS.sub("", reply) if numerals else reply
    thought, _, said = reply.rpartition("</think>")
    for text in [said] if value.search(said) else [said, thought]:
        for part in text.split(QUESTION):
            if found := _last(value, after_marker, part):
                return _value(found, values)
    return None


def alone(reply: str, values: Mapping[str, str], numerals: bool = False) -> str | None:
    """The value that is the first line with anything on it, or None if that is anything else."""
    lines = reply.strip().splitlines()
    found = lines[0].strip() if lines else ""
    is_number = numerals and bool(found) and all(c.isdecimal() and c in values for c in found)
    return _value(found, values) if found in values or is_number else None


def _value(found: str, values: Mapping[str, str]) -> str:
    """The value of a spelling; of a number of several digits, the number without leading zeros."""
    return values[found] if found in values else found.lstrip("0") or "0"


RULES = {"reasoned": reasoned, "alone": alone}


def _last(value: Pattern, after_marker: Pattern, text: str) -> str | None:
    """The spelling of the last marked value, else of the last value; None if there is no value."""
    found = None
    for marker in MARKER.finditer(text):
        kind, rest = marker[0].lower(), marker.end()
        if kind == "<answer>":
            inside = re.split(r"</answer>", text[rest:], maxsplit=1, flags=re.I)[0]
            found = _final(value, inside) or found
        elif kind.startswith("\\boxed"):
            found = _final(value, _in_braces(text, rest)) or found
        elif direct := after_marker.match(text, rest):
            found = direct[1]
        elif kind[0] == "a":
            found = _final(value, text[rest:].partition("\n")[0]) or found
    return found or _final(value, text)


def _final(value: Pattern, text: str) -> str | None:
    every = value.findall(text)
    return every[-1] if every else None


def _in_braces(text: str, start: int) -> str:
    """The text behind an opening brace, up to the brace that closes it or to the end."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return text[start:i]
    return text[start:]


@lru_cache(maxsize=16)
def _patterns(spellings: tuple[str, ...], numerals: bool) -> tuple[Pattern, Pattern]:
    """A value anywhere; and one right after a marker."""
    digits = "".join(s for s in spellings if numerals and s.isdecimal())
    some = (s for s in spellings if s not in digits)
    words = "|".join(map(_whole, sorted(some, key=len, reverse=True)))
    if digits:
        words = f"{_whole(digits[0], f'[{digits}]+')}|{words}"
    return re.compile(f"({words})"), re.compile(f"{DECORATION}({words})")


def _whole(spelling: str, pattern: str = "") -> str:
    """A spelling that is no part of a longer word or number, or a pattern of such as it. An
    underscore may be Markdown's.
    """
    before, after = r"(?<![^\W_])(?<![^\W_]_)", r"(?![^\W_])(?!_[^\W_])"
    if spelling[0].isdigit():
        before += r"(?<![-−–])(?<!\d[./])"
    if spelling[-1].isdigit():
        after += r"(?![./]\d)(?!,\d{3}(?!\d))"
    return before + (pattern or re.escape(spelling)) + after


def _with_ascii_digits(reply: str, values: Mapping[str, str]) -> str:
    """A reply whose digits of other scripts and faces are 0 to 9, unless an algebra has them."""
    if reply.isascii():
        return reply
    own = set("".join(values))
    digits = ((c, unicodedata.decimal(c, None)) for c in reply)
    return "".join(c if d is None or c in own else str(d) for c, d in digits)
