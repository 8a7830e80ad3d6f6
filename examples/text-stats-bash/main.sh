#!/bin/bash
# Measures the text given as a JSON string; see SKILL.md.
set -euo pipefail

input=$(cat)
if [[ $input != '"'*'"' ]]; then
    echo "text-stats-bash: the input must be a JSON string" >&2
    exit 2
fi
input=${input#\"}
input=${input%\"}
input=${input//'\/'/'/'}
input=${input//'\"'/'"'}
# printf understands \n, \t and \\ as JSON does.
text=$(printf '%b_' "$input")
text=${text%_}

bytes=$(printf '%s' "$text" | wc -c)
lines=$(printf '%s' "$text" | wc -l)
words=$(printf '%s' "$text" | wc -w)
longest=0
while IFS= read -r line || [[ -n $line ]]; do
    ((${#line} > longest)) && longest=${#line}
done <<<"$text"

printf '%s' "$text" | tr -s '[:space:]' '\n' | sort -u |
    while IFS= read -r word; do
        [[ -n $word ]] && printf '%d %s\n' "${#word}" "$word"
    done | sort -k1,1nr -k2 >"$SANDBOX_FILES_DIR/words-by-length.txt"

printf '{"bytes": %d, "lines": %d, "words": %d, "longest_line": %d}\n' \
    "$bytes" "$lines" "$words" "$longest" >"$SANDBOX_OUTPUT"
echo "measured $bytes bytes with $BASH_VERSION"
