"""Upper bounds on sizes, the same for files and for programs.

A file of a kilobyte can ask for gigabytes: a table of sixty operands, an arity of ten digits. So
sizes are counted and held against these before anything is listed or made.
"""

LONGEST_NAME = 64  # characters of an algebra's name
LONGEST_SYMBOL = 64  # characters of a value, an operator or a spelling
MOST_VALUES = 1_000
MOST_OPERATORS = 250
MOST_STATES = 1_000  # of a machine
MOST_PAIRS = 200_000  # of states of weights and machine that a check goes through
MOST_SPAN_PAIRS = 20_000  # the same within spans of integers, where each holds several states
MOST_SPELLINGS = 1_000
LARGEST_ARITY = 256  # the largest sum of ones that every number format of the model holds
MOST_ENTRIES = 100_000  # entries of one operator's table that is written out
MOST_CASES = 200_000  # cases of depth 1 that a check may list: up to ten of ten digits are 184,756
MOST_LEARNED = 100_000  # cases of depth 1 that training may list
MOST_TEXTS_AT_ONCE = 1 << 27  # symbols of all texts of one draw
MOST_SEEDS = 1_000_000  # seeds of one range
MOST_HIDDEN = 1 << 16  # units of a feedforward
MOST_NUMBERS = 1 << 24  # numbers held at once: of all cases to list, or of a matrix of weights
MOST_INPUTS = 1 << 20  # of a circuit: a binary file may claim any number in a few bytes
MOST_WIRES = 1 << 32  # largest number of a wire in a file, where it is a number
LONGEST_NETLIST = 1 << 30  # bytes of a file that holds a circuit
MOST_STATEMENTS = 1 << 22  # of one program from text
LONGEST_STATEMENT = 1 << 24  # characters of one of them, as of a line with an expression
LONGEST_TEXT = 1 << 26  # bytes of a file that is read as text
LONGEST_TENSORS = 1 << 30  # bytes of a file that holds tensors


def require(what: str, found: int, most: int, instead: str = "") -> None:
    """Raise a ValueError that names the bound if `found` is larger than `most`."""
    if found > most:
        advice = f"; {instead}" if instead else ""
        raise ValueError(f"{what}: expected {most} at most, found {shortened(found)}{advice}")


def shortened(number: int) -> str:
    """A number as text; large ones as a power of two, since Python refuses to write out very long
    ones.
    """
    return str(number) if number < 10**15 else f"about 2^{number.bit_length()}"
