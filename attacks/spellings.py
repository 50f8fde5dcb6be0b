"""Random algebras with random spellings: do all readers read the same language?

The parser and the oracle say what a text is: a value, or an error with its place. The engine on the
CPU has to say the same to the letter, with one reader and with two, of one text and of many, line
by line, with labels and without, and from a stream; so has the engine for a GPU, by tensor
operations and by the kernels, which run on the CPU here (not of plain and Polish notation). A model
that is written down for the algebra has to be certified and to give the oracle's values.

    python -m attacks.spellings --count 1000 --seed 0
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray

from attacks.random_algebras import SPACES, Texts, random_algebra, respelt, tables
from attacks.report import Report, numbered, run_alone
from exactformer.api import Model, construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.labelled import read_tsv_row
from exactformer.domains.formats.lines import SHOWN_PROBLEMS
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine import cpu, device, readers
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.device import DeviceEngine
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.layout import Layout
from exactformer.engine.read_off import read_off
from tests.emulated import COMPILER, Emulator
from tests.rows import line_values, listed

CLAIM = "parser, CPU engine, streams, tensor engine and kernels read the same language"
SHORT, LONG = 14, 2  # texts of an algebra
FEW_CASES = 40  # for which a perceptron in closed form is soon certified
KERNELS_EVERY = 25  # algebras; the kernels are compiled for each kind of table
KINDS_OF_TABLES = 6  # that the kernels are compiled for, each with many spellings
SIZES = {
    "team": 16,
    "first_chunk": 32,
    "chunk": 32,
    "fan": 4,
}  # small, to have many rounds


class AtOnce:
    """Runs what it is given before it goes on: the second reader takes all that it can."""

    def submit(self, job: Callable[[], None]) -> None:
        job()


@contextmanager
def changed(module: object, **values: object) -> Iterator[None]:
    """Other limits for a while, so that short texts take the ways of long ones."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def outcome(read: Callable[[], str]) -> str:
    """A value, or an error with its place, as one string; so is what should never be raised."""
    try:
        return read()
    except ExpressionError as error:
        return f"{error.offset} {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@dataclass
class Trial:
    """An algebra with everything that reads its texts."""

    report: Report
    label: str
    algebra: Algebra
    rng: Random
    kernels: bool

    def run(self) -> None:
        few = self.algebra.count_cases(every_order=self.algebra.ordered) <= FEW_CASES
        model = construct(self.algebra, "closed" if few and self.rng.random() < 0.5 else "table")
        if model.certify().verdict != "exact":
            self.tell("model", "its constructed model", "certified exact", "not certified")
            return
        leaves_out = self.algebra.parenthesized is not self.algebra
        if leaves_out and model.fast_engine() is None:  # too many states
            self.report.count("algebras left to the model")
            return
        automaton = read_off(self.algebra, model.weights)
        engine = CpuEngine(automaton, self.algebra)
        tensors = None if leaves_out else DeviceEngine(automaton, self.algebra, "cpu")
        self.report.count("algebras")
        self.report.count(f"algebras, {self.algebra.notation}")
        self.report.count("algebras left to the parser", not engine.reads_bytes)
        texts = Texts(self.algebra, self.rng)
        sizes = [self.rng.randint(1, 12) for _ in range(SHORT)]
        sizes += [self.rng.randint(60, 250) for _ in range(LONG)]
        written = [texts.draw(size) for size in sizes]
        right = [self.text(engine, tensors, text) for text in written]
        self.model(model, [expression for expression in right[:SHORT] if expression])
        data = [texts.bytes(text.replace("\n", " ")) for text in written]
        self.lines(engine, data)
        self.labelled(engine, data)
        self.several(engine, written)
        self.several(engine, data)
        if self.kernels and tensors:
            layout = Layout(automaton, **SIZES)
            tensors.parallel = GpuEngine(
                automaton,
                self.algebra,
                device="cpu",
                launch=Emulator(layout.options),
                layout=layout,
            )
            self.report.count("algebras, with kernels")
            for text, line in zip(written, data, strict=True):
                self.on_device("kernels", tensors, text, self.parser(text))
                self.on_device("kernels", tensors, line, self.parser(line))

    def parser(self, text: str | bytes, first_line: int = 1) -> str:
        return outcome(lambda: evaluate(parse(self.algebra, text, first_line=first_line)))

    def text(self, engine: CpuEngine, tensors: DeviceEngine | None, text: str) -> Expression | None:
        """Try one text everywhere; the expression that it is, if it is one."""
        expected = self.parser(text)
        self.same("one reader", text, expected, outcome(lambda: engine.value(text)))
        limits = {"WORTH_SHARING": 1, "SMALLEST_PART": self.rng.choice([1, 5, 40])}
        limits["RESIDUE_ROOM"] = self.rng.choice([4, 30, 2000])
        with changed(readers, **limits, second_core=AtOnce):
            self.same("two readers", text, expected, outcome(lambda: engine.value(text)))
        if tensors:
            self.on_device("tensors", tensors, text, expected)
        self.report.count("texts")
        if expected not in self.algebra.values:
            return None
        self.report.count("texts that are expressions")
        expression = parse(self.algebra, text)
        written = parse(self.algebra, str(expression))
        self.same("formatting", text, expression.ids.tolist(), written.ids.tolist())
        return expression

    def on_device(self, name: str, engine: DeviceEngine, text: str | bytes, expected: str) -> None:
        answers: list[int | None] = []
        ask = engine.parallel.value_of_bytes

        def value(data: NDArray[np.uint8]) -> int | None:
            answers.append(ask(data))
            return answers[-1]

        with changed(device, WORTH_A_LAUNCH=1), changed(engine.parallel, value_of_bytes=value):
            self.same(name, text, expected, outcome(lambda: engine.value(text)))
        self.report.count(f"texts decided by {name}", any(a is not None for a in answers))

    def lines(self, engine: CpuEngine, data: list[bytes]) -> None:
        """All texts as lines of one, at once and through small windows."""
        if not data[-1]:  # a text that ends with a newline has no line after it
            data = data[:-1]
        text = b"\n".join(data) + self.rng.choice([b"", b"\n"] if data[-1] else [b"\n"])
        expected = [self.parser(line, number) for number, line in enumerate(data, start=1)]
        array = np.frombuffer(text, dtype=np.uint8)
        found = listed(engine, [engine.rows(array)])
        with changed(readers, WORTH_SHARING=1, SMALLEST_PART=50, second_core=AtOnce):
            shared = listed(engine, [engine.rows(array)])
        for name, results in (("lines", found), ("shared lines", shared)):
            for line, wanted, result in zip(data, expected, results, strict=True):
                error = isinstance(result, ExpressionError)
                self.same(name, line, wanted, f"{result.offset} {result}" if error else result)
        window = self.rng.choice([16, 60, 300])
        values = line_values(engine, io.BytesIO(text), size=window)
        if len(values) != len(data):
            self.tell("stream", text, f"{len(data)} lines", f"{len(values)} values")
            return
        place, errors = 0, 0
        for number, (line, result) in enumerate(zip(data, values, strict=True), start=1):
            errors += isinstance(result, ExpressionError)
            if result is None and errors >= SHOWN_PROBLEMS:  # bad, and not one of the first few
                wanted, result = self.parser(line, number).split(" ", 1)[-1], "an error"
                wanted = wanted if wanted in self.algebra.values else "an error"
            elif str(result).startswith("byte "):  # a line longer than the window
                wanted, result = self.by_byte(line, place), str(result).splitlines()[0]
                self.report.count("errors in lines longer than the window")
            else:
                wanted, result = self.parser(line, number).split(" ", 1)[-1], str(result)
            self.same(f"stream of {window}", line, wanted, result)
            place += len(line) + 1

    def labelled(self, engine: CpuEngine, data: list[bytes]) -> None:
        """Read the texts beside labels, right and damaged ones, on either side."""
        ids = self.algebra.token_ids
        values = [symbol for symbol in ids if ids[symbol] in self.algebra.value_ids]
        lines: list[bytes] = []
        for text in data:
            spaces = self.rng.choices(SPACES, k=2)
            label = self.rng.choice([*values, *values, *ids, ""]).join(spaces).encode()
            text = text if self.rng.random() < 0.2 else text.replace(b"\t", b" ")
            fields = [text, label.replace(b"\t", b"")]
            if self.rng.random() < 0.1:
                fields = [self.rng.choice(values).encode(), self.rng.choice(fields)]
            lines.append(b"\t".join(reversed(fields) if self.rng.random() < 0.5 else fields))
        array = np.frombuffer(b"\n".join([*lines, b""]), dtype=np.uint8)
        found = engine.rows(array, labelled=True)
        with changed(readers, WORTH_SHARING=1, SMALLEST_PART=50, second_core=AtOnce):
            shared = engine.rows(array, labelled=True)
        for name, rows in (("labelled lines", found), ("shared labelled lines", shared)):
            values = listed(engine, [rows])
            for number, (line, value) in enumerate(zip(lines, values, strict=True)):
                if isinstance(value, ExpressionError):
                    result = f"{value.offset} {value}"
                else:
                    result = f"{value}, said to be {self.algebra.values[rows.labels[number]]}"
                self.same(name, line, self.labelled_row(line, number + 1), result)
                self.report.count("labelled lines that are right", not rows.errors.get(number))

    def labelled_row(self, line: bytes, number: int) -> str:
        def read() -> str:
            row = read_tsv_row(self.algebra, line, number)
            return f"{evaluate(row.content)}, said to be {row.label}"

        return outcome(read)

    def several(self, engine: CpuEngine, texts: Sequence[str | bytes]) -> None:
        """All texts at once, and those that are expressions; and some in halves."""
        expected = [self.parser(text) for text in texts]
        right = [i for i, value in enumerate(expected) if value in self.algebra.values]
        with changed(cpu, MOST_JOINED=self.rng.choice([40, 1 << 20])):
            values = outcome(lambda: " ".join(engine.texts([texts[i] for i in right])))
            self.same("several texts", repr(texts), " ".join(expected[i] for i in right), values)
            if len(right) < len(texts):
                first = next(i for i in range(len(texts)) if i not in right)
                found = outcome(lambda: " ".join(engine.texts(texts)))
                self.same("several texts, not all right", texts[first], expected[first], found)

    def by_byte(self, line: bytes, before: int) -> str:
        """The parser's answer for a line: a value, or an error located in the stream."""
        try:
            return evaluate(parse(self.algebra, line))
        except ExpressionError as error:
            characters = line.decode("utf-8", "surrogateescape")[: error.offset]
            byte = before + len(characters.encode("utf-8", "surrogateescape"))
            return f"byte {byte}: {error.problem}"

    def model(self, model: Model, expressions: list[Expression]) -> None:
        for expression, value in zip(expressions, model.predict(expressions), strict=True):
            self.same("model", str(expression), evaluate(expression), value)

    def same(self, reader: str, text: str | bytes, expected: object, found: object) -> None:
        self.report.count("comparisons")
        if expected != found:
            self.tell(reader, text, expected, found)

    def tell(self, reader: str, text: str | bytes, expected: object, found: object) -> None:
        symbols, spellings = " ".join(self.algebra.vocabulary), dict(self.algebra.spellings)
        self.report.found.append(
            f"{self.label}: {reader} on {text!r}: expected {expected!r}, found {found!r}; "
            f"vocabulary {symbols}, spellings {spellings}"
        )


def attack(count: int, seed: int) -> Report:
    """Try `count` algebras."""
    report = Report(CLAIM)
    torch.set_num_threads(1)  # small tensors
    for number in numbered(count):
        label, rng = f"seed {seed}, algebra {number}", Random(f"{seed} {number}")
        kernels = bool(COMPILER) and number % KERNELS_EVERY == KERNELS_EVERY - 1
        if kernels:  # other symbols for tables that the kernels are compiled for
            kind = number // KERNELS_EVERY % KINDS_OF_TABLES
            notations = ("infix", "prefix")
            algebra = tables(Random(f"{seed} tables {kind}"), "random", notations)
            algebra = respelt(algebra, rng)
        else:
            algebra = random_algebra(rng, "random")
        trial = Trial(report, label, algebra, rng, kernels)
        try:
            trial.run()
        except Exception as error:  # a reader that fails is a finding, too
            trial.tell("some reader", "one of its texts", "an answer", error)
    return report


if __name__ == "__main__":
    run_alone(attack, count=1_000)
