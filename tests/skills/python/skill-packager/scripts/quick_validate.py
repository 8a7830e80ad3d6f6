#!/usr/bin/env python3
"""Quick validation of a skill's folder: exit status 1 and a reason where it is not well made."""

import re
import sys
from pathlib import Path

import yaml

from scripts.utils import parse_skill_md

ALLOWED = {"name", "description", "license", "allowed-tools", "metadata", "compatibility"}


def validate_skill(folder: Path) -> tuple[bool, str]:
    if not (folder / "SKILL.md").exists():
        return False, "SKILL.md not found"
    try:
        front, _ = parse_skill_md(folder)
        fields = yaml.safe_load(front)
    except (ValueError, yaml.YAMLError) as error:
        return False, str(error).split("\n")[0]
    if not isinstance(fields, dict):
        return False, "the front matter is no map"
    unknown = sorted(set(fields) - ALLOWED)
    if unknown:
        return False, f"unexpected fields: {', '.join(unknown)}"
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64:
        return False, f"the name {name!r} is not in lower case with hyphens"
    if name != folder.name:
        return False, f"the name {name} is not the folder's, {folder.name}"
    if not isinstance(description, str) or not 0 < len(description) <= 1024:
        return False, "the description is missing or too long"
    if re.search("[<>]", description):
        return False, "the description has angle brackets"
    return True, "Skill is valid!"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("Usage: python quick_validate.py <skill_directory>")
        sys.exit(1)
    valid, message = validate_skill(Path(sys.argv[1]))
    print(message)
    sys.exit(0 if valid else 1)
