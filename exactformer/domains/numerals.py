"""Numerals of millions of digits as Python's integers, and back.

Python's own conversions refuse more than 4,300 decimal digits, by a setting of the whole process
that nothing here touches, and take ten seconds for a million. Here a numeral is cut into parts,
which are joined two by two, in the time of Python's products (it grows as n to the power 1.58; a
second for a million digits). Back to base 10, the products are those of the `decimal` module, which
are quicker. Bases that are powers of two have conversions in linear time. Other bases are written
by division, whose time grows with the square of the length: half a second for 100,000 digits.
"""

import decimal

DIGITS = "0123456789abcdef"
AT_ONCE = 2_000  # digits that Python converts by itself
BYTES_AT_ONCE = 512
BITS = {2: 1, 4: 2, 8: 3, 16: 4}  # of a digit, by the base


def to_integer(numeral: str, base: int) -> int:
    if base in BITS:
        return int(numeral, base)
    ends = range(len(numeral), 0, -AT_ONCE)
    parts = [int(numeral[max(0, end - AT_ONCE) : end], base) for end in ends]
    power = base**AT_ONCE
    while len(parts) > 1:
        parts += [0] * (len(parts) % 2)
        parts = [low + high * power for low, high in zip(parts[::2], parts[1::2], strict=True)]
        power *= power
    return parts[0]


def to_numeral(number: int, base: int) -> str:
    """The numeral of a natural number, without leading zeros."""
    if base == 10:
        return _in_decimal(number)
    if base in BITS:
        return _in_bits(number, BITS[base])
    powers = [base**AT_ONCE]
    while powers[-1] <= number:
        powers.append(powers[-1] ** 2)
    parts = [number]
    for power in reversed(powers):
        parts = [part for whole in parts for part in divmod(whole, power)]
    return "".join(_few_digits(part, base) for part in parts).lstrip("0") or "0"


def _few_digits(number: int, base: int) -> str:
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits)).rjust(AT_ONCE, "0")


def _in_bits(number: int, bits: int) -> str:
    written = format(number, "b")
    written = "0" * (-len(written) % bits) + written
    digits = {format(value, f"0{bits}b"): digit for value, digit in enumerate(DIGITS[: 1 << bits])}
    return "".join([digits[written[i : i + bits]] for i in range(0, len(written), bits)])


def _in_decimal(number: int) -> str:
    data = number.to_bytes(number.bit_length() // 8 + 1, "little")
    exact = decimal.Context(
        prec=decimal.MAX_PREC,
        Emax=decimal.MAX_EMAX,
        Emin=decimal.MIN_EMIN,
        traps=[decimal.Inexact],
    )
    with decimal.localcontext(exact):
        starts = range(0, len(data), BYTES_AT_ONCE)
        parts = [
            decimal.Decimal(int.from_bytes(data[i : i + BYTES_AT_ONCE], "little")) for i in starts
        ]
        power = decimal.Decimal(256) ** BYTES_AT_ONCE
        while len(parts) > 1:
            parts += [decimal.Decimal(0)] * (len(parts) % 2)
            parts = [low + high * power for low, high in zip(parts[::2], parts[1::2], strict=True)]
            power *= power
        return format(parts[0], "f")
