"""Converts quantities between units, and says which units there are."""

import argparse
import json
import sys

# How many of its kind's base unit one is.
UNITS = {
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "in": 0.0254, "ft": 0.3048,
               "yd": 0.9144, "mi": 1609.344},
    "mass": {"g": 0.001, "kg": 1, "t": 1000, "oz": 0.028349523125, "lb": 0.45359237},
    "temperature": {"C": None, "F": None, "K": None},
}
KINDS = {unit: kind for kind, units in UNITS.items() for unit in units}


def to_kelvin(value, unit):
    return {"C": value + 273.15, "F": (value + 459.67) * 5 / 9, "K": value}[unit]


def from_kelvin(value, unit):
    return {"C": value - 273.15, "F": value * 9 / 5 - 459.67, "K": value}[unit]


def convert(value, unit, to):
    kind = KINDS[unit]
    if KINDS[to] != kind:
        raise ValueError(f"{unit} is a {kind}, {to} is a {KINDS[to]}")
    if kind == "temperature":
        return from_kelvin(to_kelvin(value, unit), to)
    return value * UNITS[kind][unit] / UNITS[kind][to]


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, help="what to do")

    one = commands.add_parser("convert", help="convert a quantity")
    one.add_argument("value", type=float, help="how much")
    one.add_argument("unit", choices=sorted(KINDS), help="of what")
    one.add_argument("to", choices=sorted(KINDS), help="the unit of the answer")
    one.add_argument("--digits", type=int, default=3, help="decimals (default: %(default)s)")

    units = commands.add_parser("units", help="list the units")
    units.add_argument("--kind", choices=sorted(UNITS), help="only those of this kind")
    units.add_argument("--names-only", action="store_true", help="leave their kinds out")
    return parser.parse_args(argv)


def main():
    args = parse()
    if args.command == "units":
        units = {unit: kind for unit, kind in KINDS.items() if args.kind in (None, kind)}
        print(json.dumps(sorted(units) if args.names_only else units))
        return 0
    try:
        value = round(convert(args.value, args.unit, args.to), args.digits)
    except ValueError as error:
        print(f"unit-converter: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"value": value, "unit": args.to, "text": f"{value:g} {args.to}"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
