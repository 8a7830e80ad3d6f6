"""How things move: each takes a time from 0 to 1 and returns a place."""

import math


def linear(t):
    return t


def bounce_out(t):
    for offset, base, start in ((0, 0, 0), (1.5, 0.75, 1), (2.25, 0.9375, 2), (2.625, 0.984375, 2.5)):
        if t < (start + (0.5 if start > 1 else 1)) / 2.75 or start == 2.5:
            t -= offset / 2.75
            return 7.5625 * t * t + base


def elastic_out(t):
    return 1 if t in (0, 1) and t else 0 if t == 0 else 2 ** (-10 * t) * math.sin((t * 10 - 0.75) * 2 * math.pi / 3) + 1
