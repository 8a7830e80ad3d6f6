#!/bin/bash
# A document in other formats; see SKILL.md.
set -euo pipefail

document=$1
shift
name=$(basename "$document" .md)
cd "$SANDBOX_INPUT_DIR"
[[ -f $document ]] || {
    echo "there is no input file $document" >&2
    exit 1
}

words() { # the words of a plain text, one a line
    grep -oE '[[:alpha:]]{3,}' | sort -u
}

pandoc -t plain "$document" | words >/tmp/words
results='{}'
for format in "$@"; do
    target=$SANDBOX_FILES_DIR$name.$format
    pandoc --standalone --toc --metadata lang=en -o "$target" "$document"
    case $format in
    html) pandoc -f html -t plain "$target" | words >"/tmp/$format" ;;
    *) pandoc -t plain "$target" | words >"/tmp/$format" ;;
    esac
    kept=$(comm -12 /tmp/words "/tmp/$format" | wc -l)
    results=$(jq --arg f "$format" --argjson kept "$kept" --argjson of "$(wc -l </tmp/words)" \
        '.[$f] = {all_kept: ($kept == $of), $of}' <<<"$results")
done
headings=$(unzip -p "$SANDBOX_FILES_DIR$name.docx" word/document.xml | grep -o 'w:pStyle w:val="Heading[0-9]"' | sort | uniq -c |
    awk '{ print $1 ":" substr($3, 15, 1) }' | jq -R . | jq -sc .)
jq --argjson headings "$headings" '{formats: ., $headings}' <<<"$results"
