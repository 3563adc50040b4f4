"""Decimal text to the nearest double, exactly as ``float()`` rounds, without leaving compiled code.

Short numbers take Clinger's path: an integer up to 2^53 times or over an exact power of ten is rounded once,
hence correctly. Longer numbers take the algorithm of Eisel and Lemire (Lemire 2021, "Number parsing at a gigabyte per second"):
a 64 x 128 bit product, and a test whether it determines the result. ``float()`` reads the remaining numbers (`HARD`).
"""

import math

import numpy as np

from structrank._support.compile import kernel

EXACT, HARD, NOT_A_NUMBER = range(3)
ZERO, NINE = b"09"

_PLUS, _MINUS, _POINT, _SMALL_E, _LARGE_E = b"+-.eE"
_MOST_DIGITS = 18  # of any int64
_LARGEST_POWER = 300  # beyond 10^+-300 doubles overflow or lose digits; left to float()
_LARGEST_EXPONENT = 10**15  # beyond the number of digits of any text, so that no other exponent can make up for it
_TEN_TO = np.array([float(f"1e{power}") for power in range(23)])


def _leading_bits(power):
    """Return the first 128 bits of 10^power, cut off (not rounded), as two 64-bit words."""
    if power >= 0:
        ten = 10**power
        bits = ten >> (ten.bit_length() - 128) if ten.bit_length() > 128 else ten << (128 - ten.bit_length())
    else:
        ten = 10**-power
        bits = (1 << (ten.bit_length() + 127)) // ten
    return bits >> 64, bits & (2**64 - 1)


_POWERS = np.array([_leading_bits(p) for p in range(-_LARGEST_POWER, _LARGEST_POWER + 1)], dtype=np.uint64)


@kernel(inner=True)
def _product(a, b):
    """Return the high and the low 64 bits of a product of two 64-bit words."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    cross, other = a_high * b_low, a_low * b_high
    carry = ((a_low * b_low) >> half) + (cross & mask) + (other & mask)
    return a_high * b_high + (cross >> half) + (other >> half) + (carry >> half), a * b


@kernel(inner=True)
def _eisel_lemire(digits, power):
    """Return (True, the double nearest to digits x 10^power), or (False, 0) if 128 bits do not determine it."""
    word, shift = np.uint64(digits), 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == np.uint64(0):
            word <<= np.uint64(step)
            shift += step
    row = power + _LARGEST_POWER
    high, low = _product(word, _POWERS[row, 0])
    nine_bits, zero, one = np.uint64(0x1FF), np.uint64(0), np.uint64(1)
    if high & nine_bits == nine_bits and low + word < word:
        # The first 64 bits of the power leave the rounding open: take the other 64.
        extra, rest = _product(word, _POWERS[row, 1])
        low += extra
        if low < extra:
            high += one
        if high & nine_bits == nine_bits and low + one == zero and rest + word < word:
            return False, 0.0
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    if low == zero and high & nine_bits == zero and mantissa & np.uint64(3) == one:
        return False, 0.0  # possibly half-way between two doubles
    mantissa = (mantissa + (mantissa & one)) >> one
    # floor(power log2(10)) as an integer product; the mantissa has 53 bits.
    exponent = ((217706 * power) >> 16) + 63 - shift + np.int64(top) - 52
    if exponent < -1070 or exponent > 970:
        return False, 0.0
    return True, math.ldexp(np.float64(np.int64(mantissa)), np.int32(exponent))


@kernel
def read_number(text, start):
    """Read the decimal number that starts at `start`.

    Parameters
    ----------
    text : (n,) array of uint8
        The number must be followed by a byte that cannot be part of a number.
    start : int

    Returns
    -------
    status : int
        `EXACT`; `HARD` for a number that ``float()`` must read; or `NOT_A_NUMBER`, also for "nan" and "inf".
    value : float
    stop : int
        The first byte after the number; `start` if there is no number.
    """
    i = start
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    first, digits, power = i, 0, 0
    while ZERO <= text[i] <= NINE:
        digits = 10 * digits + (np.int64(text[i]) - ZERO)
        i += 1
    n_digits = i - first
    if text[i] == _POINT:
        i += 1
        point = i
        while ZERO <= text[i] <= NINE:
            digits = 10 * digits + (np.int64(text[i]) - ZERO)
            i += 1
        power = point - i
        n_digits += i - point
    if n_digits == 0:
        return NOT_A_NUMBER, 0.0, start
    stop_of_digits = i
    if text[i] == _SMALL_E or text[i] == _LARGE_E:
        i += 1
        below = text[i] == _MINUS
        if below or text[i] == _PLUS:
            i += 1
        exponent, exponent_start = 0, i
        while ZERO <= text[i] <= NINE:
            exponent = min(10 * exponent + (np.int64(text[i]) - ZERO), _LARGEST_EXPONENT)
            i += 1
        if i == exponent_start:
            return NOT_A_NUMBER, 0.0, start
        power += -exponent if below else exponent
    if n_digits > _MOST_DIGITS:
        # Zeros in front do not count.
        while first < stop_of_digits and (text[first] == ZERO or text[first] == _POINT):
            n_digits -= text[first] == ZERO
            first += 1
        if n_digits > _MOST_DIGITS:
            return HARD, 0.0, i
    if digits == 0:
        value = 0.0
    elif digits <= 2**53 and -22 <= power <= 22:
        value = digits / _TEN_TO[-power] if power < 0 else digits * _TEN_TO[power]
    elif -_LARGEST_POWER <= power <= _LARGEST_POWER:
        settled, value = _eisel_lemire(digits, power)
        if not settled:
            return HARD, 0.0, i
    else:
        return HARD, 0.0, i
    return EXACT, -value if negative else value, i
