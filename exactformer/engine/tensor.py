"""The automaton of certified weights on a whole text at once, in plain tensor operations.

It needs no compiler and runs wherever torch does. The number of steps grows with the logarithm of
the number of spans, not with their depth:

    pair      Sorted by depth, and by index within a depth, the tokens of each span lie side by side
              and end with its `)`; and the k-th `(` belongs with the k-th `)`.
    rake      A span with no unfinished span inside is run through the automaton.
    compress  A span with exactly one turns that one's value into its own: a table, made by running
              the automaton for every value. In a chain of such spans each table is composed with
              that of the span it waits for, then with that of twice as far, and so on.

Glossary: `opening` of a span is where its `(` lies among the sorted tokens, to be replaced by its
value; `waiting` is how many spans inside it are unfinished, and `inside` the sum of their numbers,
which is the number of the last one when there is one.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.lexicon import BLANK, BYTE_CLASSES, MARK, WORD
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.lexer import trie_of

LONGEST = 1 << 10  # tokens between two parentheses: they are gone through one after the other
LONGEST_WORD = 16  # bytes of a spelling that words are compared by
# Classes of bytes besides the lexicon's: of marks that are in no longer ones, and of brackets.
ALONE, ROUND, SQUARE = range(MARK + 1, MARK + 4)
MOST_NODES = 1 << 13  # of the automaton that reads words


class TensorEngine:
    """Values of texts, given as their bytes on the device."""

    def __init__(
        self, automaton: SpanAutomaton, algebra: Algebra, *, device: torch.device | str = "cpu"
    ) -> None:
        self.device = torch.device(device)
        self.words, self.group = Words(algebra), automaton.is_group
        automaton = automaton.spans
        self.start, self.values = automaton.start, automaton.n_values
        self.bad = len(algebra.vocabulary)  # the token of no value; from there none is reached
        self.width = self.bad + 1
        table = automaton.total(self.bad, self.width)
        self.table = torch.from_numpy(table.ravel()).to(self.device)
        self.longest = longest_span(automaton, LONGEST)

    def value(self, text: Tensor) -> int | None:
        """Index of the value of a text; None if it has none, or is not decided here."""
        for ids in self.words.readings(text, self.bad):
            found = self.value_of_ids(ids)
            if found is not None:
                return found
        return None

    def value_of_bytes(self, text: NDArray[np.uint8]) -> int | None:
        """Value index of a text given as bytes on the host; None if it has none."""
        return self.value(torch.tensor(text, device=self.device))

    def value_of_ids(self, ids: Tensor) -> int | None:
        """Value index of a text given as token ids; None if it has none."""
        if self.group:
            ids = torch.cat([ids.new_tensor([OPEN]), ids, ids.new_tensor([CLOSE])])
        opens, closes = ids == OPEN, ids == CLOSE
        rise = opens.to(torch.int8) - closes.to(torch.int8)
        depth = torch.cumsum(rise, 0, dtype=torch.int32)
        if not len(ids) or int(depth[-1]) or int(depth.min()) < 0:
            return None
        # Both parentheses belong to the span: `(` as an operand of the one around, `)` as its end.
        level = depth - opens.to(torch.int8) + closes.to(torch.int8)
        order = torch.sort(level, stable=True).indices
        tokens = ids[order].long()
        if int((level == 0).sum()) != 1:  # one value or one span, and nothing else
            return None
        value = self._reduce(tokens) if len(ids) > 1 else int(tokens[0])
        index = value - FIRST_VALUE
        return index if 0 <= index < self.values else None

    def _reduce(self, tokens: Tensor) -> int:
        """The token that the outermost span becomes. `tokens` is sorted by depth."""
        opening = torch.nonzero(tokens == OPEN).squeeze(1)
        end = torch.nonzero(tokens == CLOSE).squeeze(1)
        begin = torch.cat([end.new_ones(1), end[:-1] + 1])
        if int((end - begin).max()) > self.longest:
            return self.bad
        number = torch.arange(len(end), device=self.device)
        parent = torch.searchsorted(end, opening)
        parent[0] = 0  # the outermost span; its count is not used
        waiting, inside = torch.zeros_like(end), torch.zeros_like(end)
        waiting.index_add_(0, parent[1:], torch.ones_like(end[1:]))
        inside.index_add_(0, parent[1:], number[1:])
        value = torch.full_like(end, -1)
        table_of = torch.full_like(end, -1)  # of a span in a chain: its row in `tables`
        target = torch.zeros_like(end)  # and the span whose value that table is for
        tables = end.new_zeros(0, self.values + 1)
        left = number
        while len(left):
            # rake
            ready = left[(waiting[left] == 0) & (table_of[left] < 0)]
            value[ready] = self._run(tokens, begin[ready], end[ready], holes=False).squeeze(1)
            chained = left[table_of[left] >= 0]
            known = value[target[chained]]
            chained, known = chained[known >= 0], known[known >= 0]
            value[chained] = tables[table_of[chained], self._column(known)]
            done = torch.cat([ready, chained])
            tokens[opening[done]] = value[done]
            waiting.index_add_(0, parent[done], -torch.ones_like(done))
            inside.index_add_(0, parent[done], -done)
            left = left[value[left] < 0]
            # compress
            new = left[(waiting[left] == 1) & (table_of[left] < 0)]
            made = self._run(tokens, begin[new], end[new], holes=True)
            bad = torch.full_like(made[:, :1], self.bad)
            table_of[new] = torch.arange(len(new), device=self.device) + len(tables)
            target[new] = inside[new]
            tables = torch.cat([tables, torch.cat([made, bad], 1)])
            chain = left[table_of[left] >= 0]
            while len(chain := chain[table_of[target[chain]] >= 0]):
                further = target[chain]
                first = tables[table_of[further]]
                composed = tables[table_of[chain]].gather(1, self._column(first))
                following = target[further]
                tables[table_of[chain]] = composed
                target[chain] = following
        return int(value[0])

    def _column(self, token: Tensor) -> Tensor:
        """Column of each value in a table; the last column means "no value"."""
        return torch.where(token == self.bad, self.values, token - FIRST_VALUE)

    def _run(self, tokens: Tensor, begin: Tensor, end: Tensor, *, holes: bool) -> Tensor:
        """Results of spans, as tokens: (spans, 1), or with `holes` (spans, values) for every value
        that the one unfinished inner span may have.
        """
        hole = FIRST_VALUE + torch.arange(self.values, device=self.device)
        shape = len(begin), self.values if holes else 1
        state = torch.full(shape, self.start, device=self.device)
        going = torch.arange(len(begin), device=self.device)
        i = 0
        while len(going := going[begin[going] + i < end[going]]):
            token = tokens[begin[going] + i].unsqueeze(1)
            if holes:
                token = torch.where(token == OPEN, hole, token)
            state[going] = self.table[state[going] * self.width + token]
            i += 1
        return self.table[state * self.width + CLOSE]


def longest_span(automaton: SpanAutomaton, most: int) -> int:
    """The most tokens between two parentheses, or `most` if it is not less."""
    reached = np.array([automaton.start])
    for length in range(min(most, len(automaton.step) + 1)):  # a longer way would be a cycle
        following = automaton.step[reached, FIRST_VALUE:]
        reached = np.unique(following[following >= 0])
        if not len(reached):
            return length
    return most


class Words:
    """The lexicon of an algebra as tables by byte, for two ways to read a text at once.

    By bytes, where marks are single characters and operators are marks: each byte is a token. Two
    words that touch would be one, but here they would be two values, which the grammar of infix
    text refuses in a row.
    By words, if bytes tell symbols apart: a maximal run of word bytes, or one bracket, or a mark of
    one byte that is part of no longer one, or a maximal run of other bytes, is looked up whole.

    What either cannot read as the parser does has no reading and is left to others: several marks
    in a row of which one is longer, white space beyond ASCII, brackets of both kinds.
    """

    def __init__(self, algebra: Algebra) -> None:
        lexicon = algebra.lexicon
        self.spellings = {s.encode(): token for s, token in algebra.token_ids.items()}
        self.bytes_suffice = algebra.packs and all(s.isascii() for s in algebra.vocabulary)
        # Other words may be one with the value beside them, and brackets may be mixed.
        self.single = {
            s.encode(): token
            for s, token in algebra.token_ids.items()
            if len(s.encode()) == 1
            and s not in ("[", "]")
            and (s in lexicon.marks or token in algebra.value_ids)
        }
        self.has_longer = self.single.keys() != self.spellings.keys()
        self.readable = lexicon.by_bytes and all(len(s) <= LONGEST_WORD for s in self.spellings)
        classes = np.array(BYTE_CLASSES)
        marks = [s for s in self.spellings if classes[s[0]] == MARK]
        longer = {byte for s in marks if len(s) > 1 for byte in s}
        classes[[s[0] for s in marks if len(s) == 1 and s[0] not in longer]] = ALONE
        classes[[ord("("), ord(")")]] = ROUND
        if "[" in algebra.spellings:
            classes[[ord("["), ord("]")]] = SQUARE
        self.classes: NDArray[np.integer] = classes

    def byte_tokens(self, blank: int, unknown: int) -> NDArray[np.integer]:
        """The token of each byte that is a token by itself; `blank` and `unknown` for all other
        bytes.
        """
        tokens = np.where(self.classes == BLANK, blank, unknown)
        for spelling, token in self.single.items():
            tokens[spelling[0]] = token
        return tokens

    def readings(self, text: Tensor, unknown: int) -> Iterator[Tensor]:
        """The token ids of a text, first by bytes and then by words, in tensor operations."""
        blank = unknown + 1
        if self.bytes_suffice:
            by_byte = torch.from_numpy(self.byte_tokens(blank, unknown)).to(text.device)
            tokens = by_byte[text.long()]
            yield tokens[tokens != blank]
        if self.readable and len(text) and (self.has_longer or not self.bytes_suffice):
            tokens = self._by_words(text, unknown)
            if tokens is not None:
                yield tokens

    def _by_words(self, text: Tensor, unknown: int) -> Tensor | None:
        kinds = torch.from_numpy(self.classes).to(text.device)[text.long()]
        if bool((kinds == ROUND).any()) and bool((kinds == SQUARE).any()):
            return None
        before = torch.cat([kinds.new_full((1,), BLANK), kinds[:-1]])
        begin = torch.nonzero((kinds != before) | (kinds > MARK)).squeeze(1)
        end = torch.cat([begin[1:], begin.new_full((1,), len(text))])
        word = kinds[begin] != BLANK
        begin, length = begin[word], (end - begin)[word]
        bytes_of = torch.zeros(len(begin), LONGEST_WORD, dtype=torch.uint8, device=text.device)
        for i in range(min(LONGEST_WORD, int(length.max()) if len(length) else 0)):
            reach = torch.nonzero(length > i).squeeze(1)
            bytes_of[reach, i] = text[begin[reach] + i]
        halves = bytes_of.view(torch.int64)
        tokens = torch.full_like(begin, unknown)
        for spelling, token in self.spellings.items():
            wanted = np.frombuffer(spelling.ljust(LONGEST_WORD, b"\0"), np.int64)
            same = (halves == torch.from_numpy(wanted.copy()).to(text.device)).all(1)
            tokens[same & (length == len(spelling))] = token
        return tokens

    def lexer(self, unknown: int, most: int) -> tuple[NDArray[np.uint8], int, int, bool] | None:
        """The automaton with which words.h reads lexemes, its numbers of nodes and of columns, and
        whether its steps are short and all of it fits the given bytes; None if there are too many
        nodes.
        """
        children, tokens = trie_of(self.spellings, root=-1, first=3)
        # Of nodes: those of blanks and of unknown lexemes, and those of the trie.
        kinds = [BLANK, WORD, MARK, *(int(self.classes[byte]) for _, byte in children)]
        ends = [tokens.get(node, unknown) for node in range(len(kinds))]
        if len(kinds) > MOST_NODES:
            return None
        used = sorted({byte for spelling in self.spellings for byte in spelling})
        columns = self.classes.astype(np.uint8)  # of bytes that no spelling has: by their class
        columns[used] = np.arange(3, 3 + len(used))
        nodes, width = len(kinds), 3 + len(used)
        short = nodes <= 1 << 8 and unknown < 63 and 512 + nodes * (2 * width + 1) <= most
        step = np.dtype(np.uint16 if short else np.uint32)
        bits = 4 * step.itemsize  # of a node; then come two of brackets, and a token
        following = np.zeros((nodes, width), dtype=step)
        for node, kind in enumerate(kinds):
            for column, byte in enumerate([None, None, None, *used]):
                other = column if byte is None else int(self.classes[byte])
                goes_on = other == kind and other <= MARK
                after = None if byte is None else children.get((node if goes_on else -1, byte))
                after = min(other, MARK) if after is None else after
                ended = (1 << bits - 2) - 1 if goes_on or node == 0 else ends[node]
                following[node, column] = after | max(0, other - ALONE) << bits | ended << bits + 2
        before = np.where(self.classes <= MARK, self.classes, BLANK).astype(np.uint8)
        parts = before, columns, following.ravel().view(np.uint8), np.array(ends, dtype=np.uint8)
        tables = np.concatenate(parts)
        return np.pad(tables, (0, -len(tables) % 16)), nodes, width, short
