"""One table of expressions with their values, to run through the oracle and through every model."""

from typing import NamedTuple


class Case(NamedTuple):
    domain: str
    text: str
    value: str
    depth: int


CASES = [
    # Of the paper.
    Case("boolean", "((1|0)&(~0))", "1", 2),
    Case("boolean", "(1∧0)", "0", 1),
    Case("boolean", "(∼(1∨0))", "0", 2),
    Case("boolean", "(((NOT FALSE) AND TRUE) OR (FALSE AND (NOT TRUE)))", "1", 3),
    Case("arithmetic", "(2 + 3)", "5", 1),
    Case("arithmetic", "((2 + 3) * 4)", "0", 2),
    Case("arithmetic", "(7 * 8)", "6", 1),
    Case("arithmetic", "((1+2)*(3+4))", "1", 2),
    Case("arithmetic", "(((1 + 2) * (3 + 4)) + (5 * (6 + 7)))", "6", 3),
    Case("listops", "( MAX 2 7 4 )", "7", 1),
    Case("listops", "( SM 3 4 8 )", "5", 1),
    Case("listops", "( MIN 8 3 5 )", "3", 1),
    Case("listops", "( MAX 1 9 4 )", "9", 1),
    Case("listops", "( MED 8 2 5 )", "5", 1),
    Case("listops", "( MAX ( MIN 8 3 5 ) ( SM 4 7 6 ) )", "7", 2),
    # A value alone is already its own answer.
    Case("boolean", "1", "1", 0),
    Case("boolean", "FALSE", "0", 0),
    Case("arithmetic", "7", "7", 0),
    Case("listops", "0", "0", 0),
    # Every row of the Boolean tables.
    Case("boolean", "(0&0)", "0", 1),
    Case("boolean", "(0&1)", "0", 1),
    Case("boolean", "(1&1)", "1", 1),
    Case("boolean", "(0|0)", "0", 1),
    Case("boolean", "(0|1)", "1", 1),
    Case("boolean", "(1|1)", "1", 1),
    Case("boolean", "(~1)", "0", 1),
    Case("boolean", "(~0)", "1", 1),
    # The middle of two operands is the lower one; of three, the second in order.
    Case("listops", "( MED 9 2 )", "2", 1),
    Case("listops", "( MED 2 9 )", "2", 1),
    Case("listops", "( MED 3 3 )", "3", 1),
    Case("listops", "( MED 5 1 5 )", "5", 1),
    Case("listops", "( MED 1 5 1 )", "1", 1),
    # The same operand more than once.
    Case("arithmetic", "(5+5)", "0", 1),
    Case("arithmetic", "(9*9)", "1", 1),
    Case("listops", "( SM 9 9 9 )", "7", 1),
    Case("listops", "( SM 5 5 )", "0", 1),
    Case("listops", "( MAX 4 4 4 )", "4", 1),
    Case("listops", "( MIN 0 0 )", "0", 1),
    # Sums that carry and products that vanish.
    Case("arithmetic", "(9+9)", "8", 1),
    Case("arithmetic", "(0*9)", "0", 1),
    Case("arithmetic", "((9+9)*(9+9))", "4", 2),
    # Spans that touch: in prefix notation nothing lies between siblings.
    Case("listops", "(MAX(MIN 1 2)(MIN 3 4)(MIN 5 6))", "5", 2),
    Case("listops", "( SM ( SM ( SM 1 2 ) ( SM 3 4 ) ) ( SM 5 6 ) 7 )", "8", 3),
    Case("listops", "( MIN 9 ( MAX 1 ( MED 2 ( SM 8 8 ) 7 ) ) )", "6", 4),
    # One long side, to the left, to the right and inwards.
    Case("boolean", "(~(~(~(~(~1)))))", "0", 5),
    Case("boolean", "((((1&1)&1)&1)&0)", "0", 4),
    Case("arithmetic", "((((1+1)+1)+1)+1)", "5", 4),
    Case("arithmetic", "(2*(2*(2*(2*2))))", "2", 4),
    Case("arithmetic", "(1+((1+(1+1))*2))", "7", 4),
    # Deep beside shallow.
    Case("boolean", "(((0|(~0))&1)|0)", "1", 4),
    Case("arithmetic", "(3*((4+4)+((1*1)+0)))", "7", 4),
    # Other spellings, alone and mixed.
    Case("boolean", "( TRUE AND FALSE )", "0", 1),
    Case("boolean", "(NOT(TRUE OR 0))", "0", 2),
    Case("boolean", "((1 AND TRUE)∧(∼FALSE))", "1", 2),
    Case("listops", "[ MAX 1 2 ]", "2", 1),
    Case("listops", "[SM[MIN 4 6]( MAX 7 8 )9]", "1", 2),
    # White space is free.
    Case("boolean", "\n( 1\n& 0 )\n", "0", 1),
    Case("boolean", "\t(~\t0)\n", "1", 1),
    Case("arithmetic", "  ( 1+2\r\n)\t", "3", 1),
    Case("arithmetic", "(\n  (1 + 2)\n  *\n  (3 + 4)\n)", "1", 2),
    Case("listops", "(\nMAX\n1\n2\n)", "2", 1),
    Case("listops", "(MAX   1\u00a02)", "2", 1),
]
