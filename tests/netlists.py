"""Random circuits, written as AIGER, binary and ASCII, as BLIF and as programs, by code of the
tests' own.
"""

from random import Random

from tests.aiger_simulator import Circuit


def random_circuit(
    rng: Random, inputs: int, gates: int, outputs: int, reach: int = 1000
) -> Circuit:
    """Gates of the `reach` wires before them, of constants, and of the same wire twice."""
    made = []
    for variable in range(inputs + 1, inputs + gates + 1):
        below = range(max(0, 2 * (variable - reach)), 2 * variable)
        a, b = (0 if rng.random() < 0.02 else rng.choice(below) for _ in range(2))
        made.append((2 * variable, max(a, b), min(a, b)))
    last = 2 * (inputs + gates) + 2
    results = [rng.randrange(max(0, last - 2 * reach), last) for _ in range(outputs)]
    return Circuit([*range(1, inputs + 1)], results, made)


def as_aig(circuit: Circuit, behind: bytes = b"") -> bytes:
    data = _header(b"aig", circuit) + b"".join(b"%d\n" % x for x in circuit.outputs)
    for out, a, b in circuit.gates:
        data += varint(out - a) + varint(a - b)
    return data + behind


def varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def as_aag(circuit: Circuit, behind: bytes = b"", rng: Random | None = None) -> bytes:
    """With a generator, variables have other numbers, and the gates another order."""
    gates, known = [*circuit.gates], [*circuit.inputs, *(out // 2 for out, _, _ in circuit.gates)]
    number = dict(zip(known, known, strict=True))
    if rng:
        rng.shuffle(gates)
        number = dict(zip(known, rng.sample(range(1, 2 * len(known) + 1), len(known)), strict=True))
    number[0] = 0

    def named(literal: int) -> int:
        return 2 * number[literal // 2] + literal % 2

    rows = [[2 * number[variable]] for variable in circuit.inputs]
    rows += [[named(literal)] for literal in circuit.outputs]
    rows += [[named(literal) for literal in gate] for gate in gates]
    head = _header(b"aag", circuit, max(number.values()))
    return head + b"".join(b" ".join(b"%d" % x for x in row) + b"\n" for row in rows) + behind


def _header(kind: bytes, circuit: Circuit, most: int | None = None) -> bytes:
    inputs, gates = len(circuit.inputs), len(circuit.gates)
    most = inputs + gates if most is None else most
    return b"%s %d %d 0 %d %d\n" % (kind, most, inputs, len(circuit.outputs), gates)


def as_blif(circuit: Circuit, rng: Random) -> bytes:
    """Each gate as a cover, of the value 1 or of the value 0; in any order."""
    lines = [".model random # a comment", ".inputs \\"]
    lines += [" ".join(f"w{variable}" for variable in circuit.inputs)]
    lines += [".outputs " + " ".join(f"y{i}" for i in range(len(circuit.outputs)))]
    covers = []
    for out, *ends in circuit.gates:
        names = " ".join(_wire(end) for end in ends)
        wanted = [str(1 - end % 2) for end in ends]
        if rng.random() < 0.5:
            rows = [f"{''.join(wanted)} 1"]
        else:
            rows = [f"{1 - int(wanted[0])}- 0", f"-{1 - int(wanted[1])} 0"]
        covers.append([f".names {names} w{out // 2}", *rows])
    covers += [
        [f".names {_wire(literal)} y{i}", f"{1 - literal % 2} 1"]
        for i, literal in enumerate(circuit.outputs)
    ]
    covers.append([".names zero"])
    rng.shuffle(covers)
    return "\n".join([*lines, *(line for cover in covers for line in cover), ".end", ""]).encode()


def _wire(literal: int) -> str:
    return f"w{literal // 2}" if literal > 1 else "zero"


def random_covers(rng: Random, inputs: int, gates: int, outputs: int) -> bytes:
    """BLIF whose gates are covers of up to five inputs and four cubes, in any order; lines may
    go on in the next one.
    """
    wires = [f"w{i}" for i in range(inputs)]
    covers = []
    for i in range(inputs, inputs + gates):
        ends = rng.sample(wires, rng.randrange(min(5, len(wires)) + 1))
        value, cover = (
            rng.randrange(2),
            [rng.choice((" ", " \\\n ")).join([".names", *ends, f"w{i}"])],
        )
        for _ in range(rng.randrange(5) if ends else rng.randrange(2)):
            cube = "".join(rng.choice("01-") for _ in ends)
            cover.append(f"{cube} {value}".strip())
        covers.append(cover)
        wires.append(f"w{i}")
    rng.shuffle(covers)
    head = [".model covers", ".inputs " + " ".join(wires[:inputs])]
    head.append(".outputs " + " ".join(rng.sample(wires, min(outputs, len(wires)))))
    return "\n".join([*head, *(line for cover in covers for line in cover), ".end", ""]).encode()


def as_program(circuit: Circuit, rng: Random) -> bytes:
    """A statement for each gate, and for each input with a random value; in any order."""

    def operand(literal: int) -> str:
        if literal < 2:
            return str(literal)
        return f"w{literal // 2}" if literal % 2 == 0 else f"(~w{literal // 2})"

    lines = [f"w{variable} = {rng.randrange(2)};" for variable in circuit.inputs]
    for out, a, b in circuit.gates:
        lines.append(f"w{out // 2} = ({operand(a)} {rng.choice('&|')} {operand(b)});")
    lines += [f"y{i}={operand(literal)};" for i, literal in enumerate(circuit.outputs)]
    rng.shuffle(lines)
    return rng.choice(("\n", " ", "  # and so on\n")).join(lines).encode()
