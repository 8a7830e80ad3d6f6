"""What several scripts need."""

from pathlib import Path


def parse_skill_md(folder: Path) -> tuple[str, str]:
    """The front matter and the body of a SKILL.md; ValueError says what is wrong."""
    lines = (folder / "SKILL.md").read_text(encoding="utf-8").split("\n")
    if lines[0].strip() != "---":
        raise ValueError("SKILL.md has no front matter (no opening ---)")
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise ValueError("SKILL.md has front matter without an end (no closing ---)")
