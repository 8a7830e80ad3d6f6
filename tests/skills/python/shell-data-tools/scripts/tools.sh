#!/usr/bin/env bash
# Data with the shell's own tools; see SKILL.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=lib/common.sh
source "$here/lib/common.sh"

versions() {
    local tool
    for tool in jq curl sqlite3 git openssl awk tar xz zip; do
        command -v "$tool" >/dev/null || die "$tool is missing"
    done
    jq -n --arg jq "$(jq --version)" --arg curl "$(first_line curl --version)" \
        --arg sqlite "$(sqlite3 --version)" --arg openssl "$(openssl version)" \
        '{jq: ($jq | startswith("jq-1.")), curl: ($curl | test("^curl 7[.]88")),
          sqlite: ($sqlite | startswith("3.")), openssl: ($openssl | startswith("OpenSSL 3"))}'
}

json_to_csv() {
    tee "${SANDBOX_FILES_DIR}in.json" |
        jq -r '(.[0] | keys_unsorted) as $keys | $keys, (.[] | [.[$keys[]]]) | @csv' |
        tee "${SANDBOX_FILES_DIR}out.csv" | jq -R -s 'split("\n") | map(select(. != ""))'
}

csv_to_sql() {
    local db=${SANDBOX_FILES_DIR}data.db
    cat >/tmp/in.csv
    sqlite3 "$db" -cmd '.mode csv' '.import /tmp/in.csv sales'
    sqlite3 -json "$db" 'select region, sum(amount) as total, count(*) as n from sales group by region order by 1' |
        jq -c .
}

serve() {
    local port=8123 server status=0
    mkdir -p /tmp/www && printf '{"answer": [40, 2]}' >/tmp/www/data.json
    python3 -m http.server --bind 127.0.0.1 --directory /tmp/www "$port" >/dev/null 2>&1 &
    server=$!
    # shellcheck disable=SC2064 # the server of now
    trap "kill $server" EXIT
    curl -sS --retry 50 --retry-connrefused --retry-delay 1 --max-time 60 "http://127.0.0.1:$port/data.json" \
        -o /tmp/answer
    curl -sS --max-time 10 https://example.org/ >/dev/null 2>&1 || status=$?
    jq --argjson status "$status" '{sum: (.answer | add), outside: $status}' /tmp/answer
}

case ${1:-} in
versions) versions ;;
json-to-csv) json_to_csv ;;
csv-to-sql) csv_to_sql ;;
serve) serve ;;
*) die "give one of versions, json-to-csv, csv-to-sql, serve" ;;
esac
