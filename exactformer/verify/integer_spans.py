"""The readings of a span of integers, followed row by row beside a reference (`integers.py`)."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from exactformer.domains.bounds import MOST_SPAN_PAIRS, require
from exactformer.domains.integers import Integers
from exactformer.domains.numerals import to_numeral
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN
from exactformer.verify.integer_tables import ASKED, NOTHING, Bag, Hypotheses, Left, Tables
from exactformer.verify.rows import Fault

MOST_FAULTS = 1_000  # that are told of
MOST_TRIED = 150  # sum of the operands of products that are tried

DONE = "done"  # the state of a reference that has nothing left to write

# Where a numeral is: not begun, behind a digit that may be its last, or may not, or ended.
BEFORE, MAY_END, GOES_ON, ENDED = range(4)
# Where an accumulator is: at place 0, which it has not; where the left operand has just had a
# digit, so that it must have one; where it may end; or ended.
FIRST, MUST, MAY, PAST = range(4)

Node = TypeVar("Node", bound=Hashable)
Label = TypeVar("Label")


def follow(
    starts: Iterable[Node],
    steps: Callable[[Node], Iterator[tuple[Label, Hashable, Node | None]]],
) -> Iterator[list[Label]]:
    """The labels on a shortest way to each fault, the nearest first. Steps from a node have a
    label, the row that they are in, and the next node, or None where there is a fault.
    """
    before: dict[Node, tuple[Node, Label] | None] = dict.fromkeys(starts)
    waiting, told = deque(before), set()
    while waiting and len(told) < MOST_FAULTS:
        require("pairs of states to go through", len(before), MOST_SPAN_PAIRS)
        node = waiting.popleft()
        for label, row, following in steps(node):
            if following is None:
                if row not in told:
                    told.add(row)
                    way, last = [label], before[node]
                    while last is not None:
                        way.append(last[1])
                        last = before[last[0]]
                    yield way[::-1]
            elif following not in before:
                before[following] = (node, label)
                waiting.append(following)


class Place(NamedTuple):
    """A row of the first reading: the tokens of both operands, and of the accumulator."""

    a: int | None
    b: int | None
    kept: int | None


class Pair(NamedTuple):
    """A state of the weights and one of the reference, within a span.

    symbol   its operator.
    taken    the digit that a product takes.
    later    whether a product has an accumulator already.
    """

    symbol: str
    taken: int | None
    later: bool
    state: int
    reference: int | str
    left: int
    right: int  # of the accumulator, in a product
    behind: int  # rows behind the end of both, up to those that there are at least
    left_over: Hypotheses


def wrong_spans(domain: Integers, tables: Tables) -> tuple[Fault, ...]:
    """Texts in which a span does not become its value, or a product does not take a digit."""
    reading = _Spans(domain, tables, zeros_on_top=False)
    ways = reading.ways()
    if reading.wrote_zeros and not ways:
        reading = _Spans(domain, tables, zeros_on_top=True)
        ways = reading.ways()
    return tuple(reading.fault(way) for way in ways)


class _Spans:
    """zeros_on_top   whether accumulators may have them beyond the reference's.
    wrote_zeros    whether some are written.
    """

    def __init__(self, domain: Integers, tables: Tables, zeros_on_top: bool) -> None:
        self.domain, self.tables, self.zeros_on_top = domain, tables, zeros_on_top
        self.wrote_zeros = False
        self.digits = range(FIRST_VALUE, domain.first_operator)
        self.nothing = Hypotheses(())
        self.advanced, self.product = cache(self._advanced), cache(self._product)

    def ways(self) -> list[list[tuple[Pair, Place]]]:
        """The ways to faults, the nearest first."""
        self.tables.read_words(sorted(self._words()))
        self.nothing = Hypotheses((Left(),) * len(self.tables.starts))
        return [*follow(self.starts(), self.steps)]

    def starts(self) -> list[Pair]:
        found = []
        for symbol in self.domain.operators:
            start = Pair(symbol, None, False, 0, 0, BEFORE, BEFORE, 0, self.nothing)
            if symbol != "*":
                found.append(start)
                continue
            for token in (*self.digits, *([self.domain.none] if self.domain.nests else [])):
                found.append(start._replace(taken=token, right=PAST))
            for token in self.digits:
                found.append(start._replace(taken=token, later=True, right=FIRST))
        return found

    def _words(self) -> set[int]:
        """The numbers of all that the first reading may write, but for nothing."""
        found, seen = set(), {*self.starts()}
        waiting = deque(seen)
        while waiting:
            require("pairs of states to go through", len(seen), MOST_SPAN_PAIRS)
            pair = waiting.popleft()
            for place, left, right, counts in self._places(pair):
                bag, _, reference = self._row(pair, place, counts)
                word, _, state = self.tables.look(bag, pair.state)
                found.add(word)
                changed = {"state": state, "reference": reference, "left": left, "right": right}
                if (following := pair._replace(**changed)) not in seen:
                    seen.add(following)
                    waiting.append(following)
        return found - {0}

    def steps(self, pair: Pair) -> Iterator[tuple[tuple[Pair, Place], Any, Pair | None]]:
        for place, left, right, counts in self._places(pair):
            yield self._step(pair, place, left, right, counts)

    def _places(self, pair: Pair) -> Iterator[tuple[Place, int, int, bool]]:
        """The rows that may come next, where both numerals are then, and whether the accumulator's
        digit is the reference's, too.
        """
        if pair.symbol == "*":
            for a, left in self._numeral(pair.left, none=not pair.later):
                for kept, right, counts in self._accumulator(pair, a):
                    yield Place(a, None, kept), left, right, counts
            return
        for a, left in self._numeral(pair.left):
            for b, right in self._numeral(pair.right):
                yield Place(a, b, None), left, right, True

    def _numeral(self, now: int, none: bool = True) -> list[tuple[int | None, int]]:
        """Digits that a numeral may have at its next place, each with where it is then."""
        if now == ENDED:
            return [(None, ENDED)]
        if now == BEFORE:
            first: list[tuple[int | None, int]] = [(token, MAY_END) for token in self.digits]
            return [*first, (self.domain.none, ENDED)] if none and self.domain.nests else first
        on_top = MAY_END if not self.domain.nests else GOES_ON  # behind 0, unless that is alone
        more = [(token, on_top if token == FIRST_VALUE else MAY_END) for token in self.digits]
        return [(None, ENDED), *more] if now == MAY_END else [*more]

    def _accumulator(self, pair: Pair, a: int | None) -> list[tuple[int | None, int, bool]]:
        """Digits that an accumulator may have there, and whether each is the reference's, too."""
        now, then = pair.right, MAY if a is None else MUST
        if now == FIRST:
            return [(None, MUST, True)]
        found: list[tuple[int | None, int, bool]] = []
        if now in (MUST, MAY):
            found = [(k, then, True) for k in range(self.domain.base)]
        if now in (MAY, PAST):
            found.append((None, PAST, True))
            more = pair.later or (pair.reference == DONE and pair.taken != self.domain.none)
            if self.zeros_on_top and a is None and more:
                found.append((0, PAST, False))
        return found

    def _step(
        self, pair: Pair, place: Place, left: int, right: int, counts: bool = True
    ) -> tuple[tuple[Pair, Place], Any, Pair | None]:
        a, b, kept = place
        bag, expected, reference = self._row(pair, place, counts)
        word, found_kept, state = self.tables.read(bag, pair.state)
        left_over = self.advanced(pair.left_over, expected, word)
        over = a is None and b is None and (kept is None or not counts)
        room = 3 if pair.later else 4
        behind = min(pair.behind + over, room)
        if behind < room:
            below = left_over.none or (pair.symbol == "-" and expected != NOTHING)
            fine = any(left.may_be_right(below) for left in left_over.lefts)
        else:
            fine = left_over.lefts[0].is_right(left_over.none)
        if fine and self._goes_on(pair, a):
            fine = found_kept == (NOTHING if expected == ASKED else expected)
            if not fine and (expected, found_kept) == (NOTHING, 0) and reference in (0, DONE):
                fine = self.wrote_zeros = True
        label, row = (pair, place), (bag, pair.state)
        if not fine:
            return label, row, None
        changed = {"state": state, "reference": reference, "left": left, "right": right}
        return label, row, pair._replace(**changed, behind=behind, left_over=left_over)

    def _row(self, pair: Pair, place: Place, counts: bool) -> tuple[Bag, int, int | str]:
        """The bag of a row, what is to be written there, and the reference's next state."""
        domain, (a, b, kept) = self.domain, place
        second = pair.taken if pair.symbol == "*" else b
        bag = (
            (*([] if a is None else [a]), *([] if kept is None else [domain.first_kept + kept])),
            (*([] if second is None else [second]), domain.operator_id(pair.symbol)),
        )
        return bag, *self._reference(pair, a, second, kept if counts else None)

    def _advanced(self, before: Hypotheses, expected: int, word: int) -> Hypotheses:
        """The hypotheses after one more row, in which a word is written."""
        read, starts = self.tables.read_again, self.tables.starts
        lefts = []
        for i, state in enumerate(starts):
            found, below = read(not before.some, word, state) if word else (NOTHING, state)
            left = before.lefts[starts.index(below) if before.some and word else i]
            lefts.append(left.and_then(expected, found))
        none = before.none or expected == ASKED
        return Hypotheses(tuple(lefts), before.some or word > 0, none)

    def _goes_on(self, pair: Pair, a: int | None) -> bool:
        """Whether what is written may be an accumulator: not that of a single digit 0, unless
        numerals may have zeros on top.
        """
        if pair.symbol != "*" or pair.taken == self.domain.none:
            return False
        no_number = a == self.domain.none or pair.reference == DONE
        alone = self.domain.nests and pair.taken == FIRST_VALUE
        return pair.later or no_number or not alone

    def _reference(
        self, pair: Pair, a: int | None, second: int | None, kept: int | None
    ) -> tuple[int, int | str]:
        """The digit that is to be written, and the reference's next state."""
        base, none, now = self.domain.base, self.domain.none, pair.reference
        if now == DONE:
            return NOTHING, DONE
        if pair.left == BEFORE and none in (a, second):
            return ASKED, DONE
        assert isinstance(now, int)
        x, y = (0 if token is None else token - FIRST_VALUE for token in (a, second))
        ended = a is None and (kept is None if pair.symbol == "*" else second is None)
        if pair.symbol in "+*":
            number = now + (x + y if pair.symbol == "+" else x * y + (kept or 0))
            return (NOTHING if ended and not number else number % base), number // base
        if pair.symbol == "-":
            if ended:
                return (ASKED, DONE) if now else (NOTHING, 0)
            return (x - y - now) % base, int(x - y - now < 0)
        if ended:  # `now` is the sign of the difference
            return int(now == {"<": -1, "=": 0, ">": 1}[pair.symbol]), DONE
        return NOTHING, (x > y) - (x < y) or now

    # Texts

    def fault(self, way: list[tuple[Pair, Place]]) -> Fault:
        """A fault at the end of a way, with a text that it may show in, if any was found."""
        domain, (pair, place) = self.domain, way[-1]
        shown = [domain.vocabulary[t] for t in (place.a, place.b, pair.taken) if t is not None]
        shown += [] if place.kept is None else [f"{to_numeral(place.kept, domain.base)}'"]
        label = f"{pair.symbol} of {' and '.join(shown) or 'nothing'} at place {len(way) - 1}"
        places = [place for _, place in way]
        a, b = (self._operand([place[i] for place in places]) for i in range(2))
        if pair.taken is not None:
            b = self._operand([pair.taken])
            if pair.later:
                if (found := self.product(pair.taken)) is None:
                    return Fault(label)
                a, b = found
        if domain.nests and len(places) > len(a) + len(b) + 3:  # the way needs more positions
            padding = [FIRST_VALUE + 1, *[FIRST_VALUE] * len(places)]
            plus, minus = map(domain.operator_id, "+-")
            a = [OPEN, OPEN, *a, plus, *padding, CLOSE, minus, *padding, CLOSE]
        return Fault(label, domain.span(a, domain.operator_id(pair.symbol), b))

    def _operand(self, places: list[int | None]) -> list[int]:
        """The tokens of an operand whose numeral begins with these places, the lowest first."""
        if places[0] is None:
            return []
        if places[0] == self.domain.none:
            return [OPEN, FIRST_VALUE, self.domain.operator_id("-"), FIRST_VALUE + 1, CLOSE]
        tokens = [token for token in places if token is not None]
        ends = len(tokens) < 2 or tokens[-1] != FIRST_VALUE or not self.domain.nests
        return [*([] if ends else [FIRST_VALUE + 1]), *reversed(tokens)]

    def _product(self, taken: int) -> tuple[list[int], list[int]] | None:
        """Operands of a product that goes wrong where it takes this digit, which is not its first;
        None if there are none among the smallest.
        """
        for total in range(2, MOST_TRIED):
            for a in range(1, total):
                if self._goes_wrong(a, total - a, taken):
                    return self._numeral_of(a), [*self._numeral_of(total - a), taken]
        return None

    def _goes_wrong(self, a: int, prefix: int, taken: int) -> bool:
        left, kept = ([*reversed(self._numeral_of(n))] for n in (a, a * prefix))
        pair = Pair("*", taken, True, 0, 0, BEFORE, FIRST, 0, self.nothing)
        for place in range(len(left) + len(self._numeral_of(prefix)) + 4):
            digit = left[place] if place < len(left) else None
            k = kept[place - 1] - FIRST_VALUE if 0 < place <= len(kept) else None
            _, _, following = self._step(pair, Place(digit, None, k), MAY_END, MAY)
            if following is None:
                return True
            pair = following
        return False

    def _numeral_of(self, number: int) -> list[int]:
        return [self.domain.token_ids[digit] for digit in to_numeral(number, self.domain.base)]
