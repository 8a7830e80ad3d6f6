#!/usr/bin/env bash
# Statistics of a git repository; see SKILL.md.
set -euo pipefail

repository=$(mktemp -d)
export GIT_CONFIG_GLOBAL=$repository.config
git config --global user.name "Example"
git config --global user.email "example@example.org"
git config --global init.defaultBranch main
git config --global advice.detachedHead false

make_example() {
    git init -q "$1"
    cd "$1"
    printf 'one\ntwo\n' >notes.txt
    git add notes.txt
    git commit -q -m "Notes" --date "2024-01-02T10:00:00Z"
    printf 'three\n' >>notes.txt
    printf '# Title\n' >README.md
    git add .
    git -c user.name="Ada" -c user.email="ada@example.org" commit -q -m "More notes: ümlaut" \
        --date "2024-02-03T10:00:00Z"
    git switch -q -c feature
    printf 'four\n' >>notes.txt
    git commit -q -a -m "Four" --date "2024-03-04T10:00:00Z"
    git switch -q main
    git merge -q --no-ff -m "Merge feature" feature
    git tag -a -m "first" v1.0
}

if [[ -e ${SANDBOX_INPUT_DIR}history.bundle ]]; then
    git clone -q "${SANDBOX_INPUT_DIR}history.bundle" "$repository"
    cd "$repository"
else
    make_example "$repository"
    # The same way a caller's history comes.
    git bundle create -q "$repository.bundle" --all
    git clone -q "$repository.bundle" "$repository.clone"
    cd "$repository.clone"
fi

git fsck --strict >/dev/null
authors=$(git shortlog -s -n HEAD | jq -R -s 'split("\n") | map(select(. != "") |
    capture("^ *(?<n>[0-9]+)\t(?<name>.*)$") | {key: .name, value: (.n | tonumber)}) | from_entries')
added=$(git log --no-merges --numstat --format= | awk '{ n += $1 } END { print n + 0 }')
busiest=$(git log --no-merges --name-only --format= | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')

{
    echo "# $(git rev-list --count HEAD) commits"
    echo
    echo "| when | who | what |"
    echo "|---|---|---|"
    git log --date=short --format='| %ad | %aN | %s |'
} >"${SANDBOX_FILES_DIR}report.md"
git diff --stat "$(git rev-list --max-parents=0 HEAD | tail -n 1)" HEAD >"${SANDBOX_FILES_DIR}changes.txt"

jq -n --argjson authors "$authors" --argjson commits "$(git rev-list --count HEAD)" \
    --argjson files "$(git ls-files | wc -l)" --argjson added "$added" --arg busiest "$busiest" \
    --arg described "$(git describe --tags --always)" --argjson rows "$(grep -c '^| 20' "${SANDBOX_FILES_DIR}report.md")" \
    '{$commits, $authors, $files, lines_added: $added, $busiest, $described, rows_of_report: $rows}' \
    >"$SANDBOX_OUTPUT"
