# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The skills of tests/skills, which are like those that people publish: nothing is complained of
# or missing, and their own tests pass. All of them, and the images `data` and `office`, only when asked for.

skills=$E2E_ROOT/tests/skills

# Skills of a folder by their own tests, beside one push of all.
skills_pass() { # the folder, then their names
    local folder=$skills/$1 name began failed=()
    shift
    expect 0 skillvm skill push "$folder"
    equal "$(grep warning <<<"$ERR" || true)" "" "what the push warns of"
    for name in "$@"; do
        began=$SECONDS
        capture skillvm skill test "$folder/$name"
        printf '%s: exit status %s, %s s\n%s\n' "$name" "$RC" $((SECONDS - began)) "$OUT$ERR"
        ((RC == 0)) || failed+=("$name")
    done
    ((${#failed[@]} == 0)) || fail "their own tests fail: ${failed[*]}"
}

# Those that take least.
# limit skills_pass_their_tests 1200
case_skills_pass_their_tests() {
    skills_pass python config-lint file-inventory schema-validation skill-packager sqlite-explorer \
        unicode-names
}

# limit skills_of_image_python 1800
# asked skills_of_image_python
case_skills_of_image_python() {
    mapfile -t names < <(ls "$skills/python")
    skills_pass python "${names[@]}"
}

# limit skills_of_image_node 900
# long skills_of_image_node
case_skills_of_image_node() {
    [[ -e $SKILLVM_SHARE/node.erofs ]] || skip "the image node is not built"
    mapfile -t names < <(ls "$skills/node")
    skills_pass node "${names[@]}"
    equal "$(skillvm skill inspect docx-letters -o json | jq -r .image)" node "the image that is chosen"
}

# One run begins it, another goes on, the last one ends it, each in a machine of its own.
# limit skill_goes_on_in_a_session 300
case_skill_goes_on_in_a_session() {
    local ledger=$skills/python/expense-ledger
    step() { expect 0 skillvm run "$ledger" --session trip --json --input "$@"; }
    step '{"step": "open", "budgets": {"travel": 50000, "Büro": 9900}}'
    equal "$(jq -c '[.output, .session.files]' <<<"$OUT")" \
        '[{"refused":null,"left":{"Büro":9900,"travel":50000},"integrity":"ok"},1]' "the first step"
    step '{"step": "post", "entries": [["2026-03-02", "travel", 4250], ["2026-03-01", "Büro", 999]]}'
    equal "$(jq -c .output.left <<<"$OUT")" '{"Büro":8901,"travel":45750}' "the second step"
    step '{"step": "post", "entries": [["2026-03-03", "travel", 1], ["2026-03-03", "hotel", 1]]}'
    equal "$(jq -c '[.output.refused, .output.left.travel]' <<<"$OUT")" \
        '["FOREIGN KEY constraint failed",45750]' "entries of which one is wrong"
    step '{"step": "close"}' --output-dir statement
    equal "$(jq -c '[.output.integrity, .session.files]' <<<"$OUT")" '["ok",0]' "the third step"
    equal "$(tr -d '\r' <statement/statement.csv)" "day,category,cents,total
2026-03-01,Büro,999,999
2026-03-02,travel,4250,5249" "the statement"
    expect 1 skillvm run "$ledger" --session trip --input '{"step": "close"}'
    contains "$ERR" "begin with the step open" "a ledger that was closed"
    skillvm session rm trip
}

# What they leave is looked at from outside as well.
# limit skills_leave_what_they_say 300
case_skills_leave_what_they_say() {
    expect 0 skillvm run "$skills/python/archive-checksums" --output-dir archives
    # The check of SHA256SUMS was to fail for what the skill had changed.
    expect 1 bash -c 'cd archives && sha256sum --check --quiet SHA256SUMS'
    equal "$OUT" "content.tar: FAILED" "the sums"
    equal "$(tar -xOf archives/content.tar.xz ./numbers.txt | tail -n 1)" 5000 "a file of an archive"
    expect 0 skillvm run "$skills/python/sqlite-explorer" --output-dir tables
    equal "$(python3 -c 'import sqlite3
print(*sqlite3.connect("tables/data.db").execute("select sum(amount), (select city from customers where id = 3) from orders").fetchone())')" \
        "139.74 Köln" "the database"
    mkdir -p in/a/b
    for ((n = 0; n < 200; n++)); do
        echo "$((n % 190))" >"in/a/b/ünïcode $n.txt"
    done
    expect 0 skillvm run "$skills/python/file-inventory" -f in --output-dir out --json
    equal "$(jq -c '[.output.files, (.output.duplicates | length)]' <<<"$OUT")" '[200,10]' "200 files"
    equal "$(wc -l <out/inventory.csv)" 201 "the inventory"
    expect 0 skillvm run "$skills/python/geojson-export" --input '{"points": 6000}' --timeout 250s \
        --output-dir points --json
    equal "$(jq -c '[.truncated, (.output.features | length), .output.features[5999].properties]' <<<"$OUT")" \
        '[false,6000,{"id":5999,"name":"Pünkt 5999"}]' "a large output"
    equal "$(zcat points/points.ndjson.gz | tr -d '\n' | sha256sum | cut -d ' ' -f 1)" "$(jq -r .output.digest <<<"$OUT")" \
        "the large file"
}

# limit skills_of_image_data 3000
# asked skills_of_image_data
case_skills_of_image_data() {
    [[ -e $SKILLVM_SHARE/data.erofs ]] || skip "the image data is not built"
    mapfile -t names < <(ls "$skills/data")
    skills_pass data "${names[@]}"
}

# LibreOffice starts slowly where the processor is emulated.
# limit skills_of_image_office 3000
# asked skills_of_image_office
case_skills_of_image_office() {
    [[ -e $SKILLVM_SHARE/office.erofs ]] || skip "the image office is not built"
    mapfile -t names < <(ls "$skills/office")
    skills_pass office "${names[@]}"
    equal "$(skillvm skill inspect docx-to-pdf -o json | jq -r .image)" office "the image that is chosen"
}

# A snapshot may hold NumPy, whose generator is drawn at import: each wake-up draws it anew. It is made
# behind the first run, minutes later where the processor is emulated.
# limit warm_numpy_draws_anew 3000
# asked warm_numpy_draws_anew
case_warm_numpy_draws_anew() {
    local warm=0
    [[ -e $SKILLVM_SHARE/data.erofs ]] || skip "the image data is not built"
    skill draws main.py 'image: data' <<'S'
import json
import numpy as np
print(json.dumps([np.random.random(), np.random.default_rng().random()]))
S
    while ((warm < 4)); do
        expect 0 skillvm run draws --timeout 300s --json
        if [[ $(jq -r .profile <<<"$OUT") == numpy ]]; then
            jq '.output[]' <<<"$OUT" >>drawn
            warm=$((warm + 1))
        fi
    done
    equal "$(sort -u drawn | wc -l)" 8 "different numbers"
}
