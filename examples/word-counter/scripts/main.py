"""Counts the words of a text. Input, output and artifacts are described in SKILL.md."""

import collections
import csv
import json
import os
import pathlib
import sys

TOP_DEFAULT = 10
TOP_MAX = 100


def read_request():
    raw = os.environ.get("SANDBOX_INPUT")
    if raw is None:
        raw = sys.stdin.read()
    request = json.loads(raw)
    if not isinstance(request, dict):
        raise ValueError("the input must be a JSON object")
    return request


def read_text(request):
    if "text" in request:
        if not isinstance(request["text"], str):
            raise ValueError("`text` must be a string")
        return request["text"]
    if "file" not in request:
        raise ValueError("give `text` or `file`")
    name = pathlib.PurePosixPath(request["file"])
    if name.is_absolute() or ".." in name.parts:
        raise ValueError("`file` must be a relative path")
    skill_dir = pathlib.Path(__file__).resolve().parent.parent
    for folder in (pathlib.Path(os.environ["SANDBOX_INPUT_DIR"]), skill_dir):
        candidate = folder / name
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise ValueError(f"no such file: {name}")


def bare(token):
    """The token without the punctuation around it, in lower case."""
    start, end = 0, len(token)
    while start < end and not token[start].isalnum():
        start += 1
    while end > start and not token[end - 1].isalnum():
        end -= 1
    return token[start:end].lower()


def count(text, top):
    words = [word for word in map(bare, text.split()) if word]
    table = collections.Counter(words)
    ranked = sorted(table.items(), key=lambda item: (-item[1], item[0]))
    lines = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    result = {
        "characters": len(text),
        "bytes": len(text.encode("utf-8")),
        "lines": lines,
        "words": len(words),
        "unique_words": len(table),
        "longest_word": max(table, key=lambda word: (len(word), word), default=""),
        "top_words": [{"word": word, "count": n} for word, n in ranked[:top]],
    }
    return result, ranked


def write_csv(path, ranked):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["word", "count"])
        writer.writerows(ranked)


def write_report(path, result):
    lines = ["# Word count", "", "| figure | value |", "|---|---|"]
    for name in ("characters", "bytes", "lines", "words", "unique_words", "longest_word"):
        lines.append(f"| {name.replace('_', ' ')} | {result[name]} |")
    lines += ["", "| word | count |", "|---|---|"]
    lines += [f"| {row['word']} | {row['count']} |" for row in result["top_words"]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    request = read_request()
    top = request.get("top", TOP_DEFAULT)
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= TOP_MAX:
        raise ValueError(f"`top` must be a whole number from 0 to {TOP_MAX}")
    result, ranked = count(read_text(request), top)

    files = pathlib.Path(os.environ["SANDBOX_FILES_DIR"])
    write_csv(files / "counts.csv", ranked)
    write_report(files / "report.md", result)
    with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
        json.dump(result, file, ensure_ascii=False)
    print(f"{result['words']} words, {result['unique_words']} of them different")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as problem:
        sys.exit(f"word-counter: {problem}")
