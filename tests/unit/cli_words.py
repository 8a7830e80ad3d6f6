# SPDX-License-Identifier: Apache-2.0
"""The help against the command line itself, the completion for bash, and the man page.

cli_words.py SKILLVM COMPLETION MANPAGE: every command, verb and option of the help is taken and
completed, and nothing else is; the page is whole.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

program, completion, page = map(os.path.abspath, sys.argv[1:])
GLOBALS = {"--server", "--key", "--as", "--socket", "--data"}
# Options of these that need a value of a certain form to be taken.
VALUES = {"NAME=VALUE": "A=1", "[NAME=]PATH": "/dev/null"}
# Each way of reading options: these are tried with the options of all others too.
OTHERS = {("run",), ("up",), ("mcp",), ("status",), ("exec", "list"), ("key", "create")}
failures = []


def expect(ok, text):
    if not ok:
        failures.append(text)


def run(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60)


def help_of(words):
    done = run(*words, "--help")
    expect(done.returncode == 0, f"{words} --help: status {done.returncode} {done.stderr}")
    expect(done.stdout.startswith(f"usage: skillvm {' '.join(words)}") and
           "\nexample" in done.stdout, f"{words} --help: {done.stdout}")
    return done.stdout


def listed(text):
    """The first words of lines such as "  push PATH   register a skill"."""
    return re.findall(r"^  ([a-z]+)(?: [A-Z_@\[\]]+)?  +\S", text, re.M)


def options_of(text):
    """Those of lines such as "  -o, --output json|table   how to print", with what they take."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"^ +(-.*?)(?:  |$)", line)
        if not match:
            continue
        left = match.group(1)
        takes = re.sub(r"--?[a-zA-Z-]+,? *", "", left)
        for option in re.findall(r"(?:^|[ ,])(--?[a-zA-Z][a-z-]*)", left):
            found[option] = takes
    return {o: t for o, t in found.items() if o not in GLOBALS}


def read_commands():
    """All commands by their words, with their options and whether these take a value."""
    main = run("help").stdout.split("Which daemon:")[0]
    commands = {}
    for name in listed(main):
        if name == "help":
            commands[(name,)] = {}
            continue
        text = help_of([name])
        verbs = listed(text) if re.search(r"usage: skillvm \w+ VERB", text) else []
        if not verbs:
            commands[(name,)] = options_of(text)
        for verb in verbs:
            commands[(name, verb)] = options_of(help_of([name, verb]))
    return commands


def check_parsing(commands):
    """What the help of a command names is taken, and no other's option is."""
    everything = {o: t for options in commands.values() for o, t in options.items()}
    for words, options in commands.items():
        if words == ("help",):
            continue
        for option, takes in everything.items():
            takes = options.get(option, takes)
            value = takes.split("|")[0] if "|" in takes else VALUES.get(takes, "1")
            value = [value] if takes else []
            is_there = option in options
            if not is_there and (words not in OTHERS or not option.startswith("--")):
                continue  # another letter may mean another option here
            if any(o.startswith(option) for o in options if o != option):
                continue  # the beginning of one
            done = run(*words, option, *value, "--help")
            expect((done.returncode == 0) == is_there,
                   f"{' '.join(words)} {option}: status {done.returncode}, {done.stderr.strip()}"
                   f" although the help says {'it' if is_there else 'nothing of it'}")


def complete(line, cwd=None):
    script = ('source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _skillvm; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", completion, line], text=True, cwd=cwd,
                          capture_output=True, timeout=60)
    expect(done.returncode == 0 and not done.stderr, f"completing \"{line}\": {done.stderr}")
    return {word for word in done.stdout.splitlines() if word}


def check_completion(commands):
    firsts = {words[0] for words in commands}
    expect(complete("skillvm ") == firsts, f"commands: {complete('skillvm ') ^ firsts}")
    expect(complete("skillvm help ") == firsts, "help completes other commands")
    verbs = {words[1] for words in commands if len(words) == 2 and words[0] == "skill"}
    expect(complete("skillvm help skill ") == verbs, "help completes other verbs")
    for first in {words[0] for words in commands if len(words) == 2}:
        verbs = {words[1] for words in commands if words[0] == first and len(words) == 2}
        got = complete(f"skillvm {first} ")
        expect(got == verbs, f"verbs of {first}: {got ^ verbs}")
    for words, options in commands.items():
        got = complete(f"skillvm {' '.join(words)} -") - GLOBALS - {"-h", "--help"}
        expect(got == set(options), f"options of {words}: {got ^ set(options)}")
        for option, takes in options.items():
            if not takes:  # a flag leaves the next word to the command
                got = complete(f"skillvm {' '.join(words)} {option} --output")
                expect(got == ({"--output", "--output-dir"} & set(options)),
                       f"{words} {option} takes a word: {got}")
    expect(complete("skillvm --server http://h:1 --key @/k ex") == {"exec"}, "behind a server")
    expect(complete("skillvm exec list -o ") == {"json", "table"}, "values of -o")
    expect(complete("skillvm exec list --status ca") == {"cancelled"}, "values of --status")
    expect(complete("skillvm run x -- -") == set(), "what follows -- is the skill's")


def check_completion_of_names():
    """Names that a daemon gives are words and never code."""
    with tempfile.TemporaryDirectory() as folder:
        fake = os.path.join(folder, "skillvm")
        with open(fake, "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\n# prints what it was asked, and names\n"
                    'echo "$*" >>asked\necho "NAME  VERSION"\n'
                    "printf '%s  1.0\\n' good-name '$(touch' 'a;touch' '`touch' '../x' '*'\n")
        os.chmod(fake, 0o755)
        for line in ("skill show ", "skill rm go", "exec list --skill "):
            got = complete(f"{fake} --socket /s {line}", cwd=folder)
            expect(got == {"good-name"}, f"names for {line}: {got}")
        with open(os.path.join(folder, "asked"), encoding="utf-8") as f:
            expect(set(f.read().splitlines()) == {"--socket /s skill list"}, "what is asked")
        expect(sorted(os.listdir(folder)) == ["asked", "skillvm"], "a name was run")


def check_page(commands):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for words in commands:
        expect(re.search(rf"^\.It Ic {' '.join(words)}( Ar .*)?$", text, re.M), f"{words} in the page")
    for option in GLOBALS:
        expect(f".It Fl {option[1:]} " in text.split(".Sh COMMANDS")[0], f"{option} in the page")
    for name in set(re.findall(r"\b(?:SKILLVM|SKILLBOX)_[A-Z_]+", run("help").stdout)):
        expect(re.search(rf"^\.It Ev.*\b{name}\b", text, re.M), f"{name} in the page")
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", completion], text=True, capture_output=True)
        expect(done.returncode == 0, f"shellcheck: {done.stdout}")
    if not shutil.which("mandoc"):
        print("skipped: there is no mandoc to check the page with")
        return False
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", page], text=True,
                          capture_output=True)
    expect(done.returncode == 0, f"mandoc: {done.stdout}")
    return True


all_commands = read_commands()
expect(len(all_commands) > 20, f"few commands: {sorted(all_commands)}")
check_parsing(all_commands)
check_completion(all_commands)
check_completion_of_names()
whole = check_page(all_commands)
for failure in failures:
    print("failed:", failure)
print(f"{len(all_commands)} commands, {sum(map(len, all_commands.values()))} options")
sys.exit(1 if failures else 0 if whole else 77)
