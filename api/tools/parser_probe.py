# SPDX-License-Identifier: Apache-2.0
"""Describes the command line of one script of a skill as JSON, and leaves its work undone.

The daemon runs this in a machine of its own, in the skill's root: the first argument is the
script's path from there. The script runs up to the moment in which it asks argparse or click for
its arguments; then the parser is written to $SANDBOX_OUTPUT and the process ends. A script that
imports none of them is not run at all. api/tools/parser.h describes the JSON. Whoever reads it must
not trust it: the script can write there too.
"""

DEPTH_MAX = 4
ACTIONS_MAX = 128
COMMANDS_MAX = 64
CHOICES_MAX = 200
TEXT_MAX = 1024
# Typer makes commands of click's.
PARSERS = {"argparse", "click", "typer"}


def clean(value):
    """Text of bounded length that is UTF-8, or None."""
    if not isinstance(value, str):
        return None
    text = " ".join(value.split()).encode("utf-8", "replace").decode()
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "\u2026"


def exact(value):
    """Text that must not be changed, or None where it cannot be passed on as it is."""
    try:
        return value if len(value.encode("utf-8")) <= TEXT_MAX and "\0" not in value else None
    except (AttributeError, UnicodeEncodeError):
        return None


def scalar(value):
    """A JSON scalar for a value, or None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 2**53 else None
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    return exact(value)


def imported_parsers(tree):
    import ast

    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        found |= PARSERS & {name.partition(".")[0] for name in names}
    return found


def type_of(parser, action):
    import decimal
    import json

    kind = action.type
    if isinstance(kind, str):
        kind = parser._registry_get("type", kind, kind)
    known = {None: "string", str: "string", int: "integer", float: "number", bool: "boolean"}
    known.update({decimal.Decimal: "number", json.loads: "json"})
    try:
        if kind in known:
            return known[kind]
        samples = list(action.choices)[:1] if action.choices else []
    except TypeError:
        samples = []
    # A function of the script's own: what it makes shows in the choices or in the default.
    sample = samples[0] if samples else action.default
    if isinstance(sample, bool):
        return "string"
    return {int: "integer", float: "number"}.get(type(sample), "string")


def choices_of(action):
    import itertools

    if action.choices is None:
        return None
    try:
        found = list(itertools.islice(iter(action.choices), CHOICES_MAX + 1))
    except TypeError:
        return None
    found = [exact(str(c)) if scalar(c) is None else scalar(c) for c in found]
    return found if len(found) <= CHOICES_MAX and None not in found else None


def plain_default(value):
    """A scalar or a list of some, or None."""
    if isinstance(value, (list, tuple)):
        items = [scalar(item) for item in value[:CHOICES_MAX]]
        return items if len(value) <= CHOICES_MAX and None not in items else None
    return scalar(value)


def default_of(action):
    import argparse

    return None if action.default is argparse.SUPPRESS else plain_default(action.default)


def kind_of(action):
    import argparse

    kinds = (
        (argparse.BooleanOptionalAction, "switch"),
        (argparse._StoreFalseAction, "unset"),
        ((argparse._StoreConstAction, argparse._AppendConstAction), "set"),
        (argparse._CountAction, "count"),
        (argparse._ExtendAction, "extend"),
        (argparse._AppendAction, "append"),
    )
    for classes, name in kinds:
        if isinstance(action, classes):
            return name
    return "set" if action.nargs == 0 else "store"


def help_of(parser, action):
    import argparse

    notes = []
    for group in parser._mutually_exclusive_groups:
        members = group._group_actions
        others = [str(a.dest) for a in members if a is not action]
        if not any(a is action for a in members) or not others:
            continue
        if group.required:
            notes.append("one of these is required: " + ", ".join(str(a.dest) for a in members))
        notes.append("not together with " + ", ".join(others))
    text = action.help
    if text is argparse.SUPPRESS:
        text = None
    if text:
        try:
            text = parser._get_formatter()._expand_help(action)
        except Exception:
            pass
    notes = "(" + "; ".join(notes) + ")" if notes else None
    return clean(" ".join(part for part in (text, notes) if part)) or None


def describe_commands(action, depth):
    import argparse

    helps = {a.dest: a.help for a in action._choices_actions}
    commands, seen = [], set()
    for name, parser in action.choices.items():
        # Other names of the same command.
        if id(parser) in seen or exact(name) is None or len(commands) == COMMANDS_MAX:
            continue
        seen.add(id(parser))
        text = helps.get(name)
        commands.append(
            {
                "name": name,
                "help": clean(None if text is argparse.SUPPRESS else text),
                "parser": describe(parser, depth + 1),
            }
        )
    dest = None if action.dest is argparse.SUPPRESS else clean(action.dest)
    return {
        "kind": "commands",
        "dest": dest,
        "required": bool(action.required),
        "help": clean(None if action.help is argparse.SUPPRESS else action.help),
        "commands": commands,
    }


def describe_action(parser, action, depth):
    import argparse

    if isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
        return None
    if isinstance(action, argparse._SubParsersAction):
        return describe_commands(action, depth) if depth < DEPTH_MAX else None
    if action.help is argparse.SUPPRESS and not action.required:
        return None
    nargs = action.nargs
    if nargs in (argparse.REMAINDER, argparse.PARSER):
        nargs = "rest"
    options = [exact(option) for option in action.option_strings]
    return {
        "kind": kind_of(action),
        "dest": clean(action.dest),
        "options": [option for option in options if option],
        "nargs": nargs if isinstance(nargs, (int, str)) else None,
        "type": type_of(parser, action),
        "choices": choices_of(action),
        "default": default_of(action),
        "required": bool(action.required) if options else nargs not in ("?", "*", "rest"),
        "help": help_of(parser, action),
    }


def describe(parser, depth=0):
    text = parser.description
    try:
        text = text % {"prog": parser.prog} if isinstance(text, str) else None
    except (TypeError, ValueError, KeyError):
        pass
    actions = [describe_action(parser, action, depth) for action in parser._actions]
    actions = [action for action in actions if action]
    return {"description": clean(text), "actions": actions[:ACTIONS_MAX]}


def click_type(param):
    import click
    import json

    kinds = (
        (click.types.IntParamType, "integer"),
        (click.types.FloatParamType, "number"),
    )
    if getattr(param.type, "func", None) is json.loads:
        return "json"
    return next((name for kind, name in kinds if isinstance(param.type, kind)), "string")


def click_choices(param):
    import click

    if isinstance(param.type, click.types.BoolParamType):
        return ["true", "false"]
    if not isinstance(param.type, click.Choice):
        return None
    found = [exact(choice) for choice in param.type.choices]
    return found if len(found) <= CHOICES_MAX and None not in found else None


def click_kind(param):
    """The kind of an option, and the names that it has then."""
    others = param.secondary_opts
    if param.count:
        return "count", param.opts
    if param.is_flag and others and all(name.startswith("--no-") for name in others):
        return "switch", param.opts + others
    # "--loud/--quiet": what changes the default.
    if param.is_flag:
        return ("unset", others) if others and param.default is True else ("set", param.opts)
    return ("append" if param.multiple else "store"), param.opts


def click_nargs(param, is_option):
    if param.nargs == -1:
        return "+" if param.required else "*"
    if is_option and param._flag_needs_value:
        return "?"
    if param.nargs == 1:
        return None if is_option or param.required else "?"
    return param.nargs


def describe_param(param):
    import click

    is_option = isinstance(param, click.Option)
    kind, names = click_kind(param) if is_option else ("store", [])
    # It ends the script, as --version does.
    if is_option and param.is_eager and not param.expose_value:
        return None
    required = bool(param.required or getattr(param, "prompt", None))
    if getattr(param, "hidden", False) and not required:
        return None
    # A value is joined by "=", and click takes "-n=5" for "=5".
    takes_value = kind in ("store", "append")
    names = [n for n in names if exact(n) and (n.startswith("--") or not takes_value)]
    if is_option and not names:
        if required:
            raise ValueError("an option that cannot be given by its long name")
        return None
    return {
        "kind": kind,
        "dest": clean(param.name),
        "options": names,
        "nargs": click_nargs(param, is_option),
        "type": click_type(param),
        "choices": click_choices(param),
        "default": plain_default(param.default),
        "required": required,
        "help": clean(getattr(param, "help", None)),
    }


def describe_click_commands(group, depth):
    import click

    context = click.Context(group)
    commands = []
    for name in group.list_commands(context)[:COMMANDS_MAX]:
        command = group.get_command(context, name)
        if command is None or command.hidden or exact(name) is None:
            continue
        text = clean(command.get_short_help_str(TEXT_MAX)) or None
        parser = describe_click(command, depth + 1)
        commands.append({"name": name, "help": text, "parser": parser})
    return {
        "kind": "commands",
        "dest": None,
        "required": not group.invoke_without_command,
        "help": None,
        "commands": commands,
    }


def describe_click(command, depth=0):
    actions = [describe_param(param) for param in command.params]
    actions = [action for action in actions if action][: ACTIONS_MAX - 1]
    if hasattr(command, "list_commands") and depth < DEPTH_MAX:
        actions.append(describe_click_commands(command, depth))
    text = command.help.partition("\f")[0] if command.help else None
    return {"description": clean(text), "actions": actions}


def main():
    import ast
    import json
    import os
    import runpy
    import sys

    output = os.environ["SANDBOX_OUTPUT"]
    root = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1]
    script = os.path.join(root, path)
    answer = {"version": 1, "doc": None, "parser": None}

    def end(*_args, **_kwargs):
        with open(output, "w", encoding="utf-8") as f:
            json.dump(answer, f, allow_nan=False)
        os._exit(0)

    def taker(describe):
        def take(parser, *_args, **_kwargs):
            try:
                answer["parser"] = describe(parser)
            finally:
                end()

        return take

    try:
        with open(script, "rb") as f:
            tree = ast.parse(f.read(), script)
        answer["doc"] = clean(ast.get_docstring(tree))
        parsers = imported_parsers(tree)
        if "argparse" in parsers:
            import argparse

            for name in ("args", "known_args", "intermixed_args", "known_intermixed_args"):
                setattr(argparse.ArgumentParser, "parse_" + name, taker(describe))
        if parsers - {"argparse"}:
            import click

            base = getattr(click.core, "BaseCommand", click.Command)
            base.main = base.__call__ = taker(describe_click)
        if not parsers:
            end()
        sys.argv = [script]
        sys.path[0] = os.path.dirname(os.path.realpath(script))
        try:
            runpy.run_path(script, run_name="__main__")
        except ImportError:
            # One that runs as a module of its skill only.
            sys.path[0] = root
            module = os.path.splitext(path)[0].replace("/", ".")
            runpy.run_module(module, run_name="__main__")
    finally:
        end()


main()
