#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks what makes skillvmd a service: its units by systemd-analyze, the manuals by mandoc, the
# sample settings by skillvmd itself, docs/config.md against them, and what is installed.
#   check-service.sh PROGRAM    the skillvmd to check with
# Without systemd-analyze or mandoc their part is left out, and the exit status is 77.

set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
left_out=()
complain() {
    printf '%s\n' "$1" >&2
    failed=1
}

# systemd-analyze wants the programs of a unit to exist.
sed -e "s#@BINDIR@#$(dirname "$program")#" -e 's#@SYSCONFDIR@#/etc#' \
    api/service/skillvmd.service.in >"$work/skillvmd.service"
cp api/service/skillvmd.socket "$work/"
if grep -qE '@[A-Z]+@' "$work/skillvmd.service"; then
    complain 'skillvmd.service.in has a placeholder that nobody fills'
fi
exposure() { # tenths, of what
    systemd-analyze security --offline=yes --threshold="$1" "$work/skillvmd.service" \
        >"$work/security" 2>&1 ||
        complain "systemd-analyze security, $2: more than $1 tenths: $(tail -n 1 "$work/security")"
}
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no "$work/skillvmd.service" "$work/skillvmd.socket" \
        >"$work/verify" 2>&1 || complain "systemd-analyze verify fails: $(cat "$work/verify")"
    # Only of our units: the machine's own may have faults too.
    if grep -q "skillvmd\." "$work/verify"; then
        complain "systemd-analyze verify: $(grep "skillvmd\." "$work/verify")"
    fi
    exposure 18 "as it is shipped"
    # What it misses is what docs/deploy.md has a reason for.
    # shellcheck disable=SC2016 # quotes of a page
    sed -n '/^| it misses /,/^$/p' docs/deploy.md | sed 's/^| //; s/ | .*//; s/\\|/|/' |
        grep -oE '`[^`]+`' | tr -d '`' | sort >"$work/reasons"
    sed -n 's/^✗ \([^ ]*\) .*/\1/p' "$work/security" | sort | diff - "$work/reasons" >"$work/diff" ||
        complain "systemd-analyze security misses (<), docs/deploy.md says (>): $(cat "$work/diff")"
    # With what isolation: strict takes.
    mkdir "$work/skillvmd.service.d"
    cp api/service/strict.conf "$work/skillvmd.service.d/"
    exposure 30 "with strict.conf"
    figure=$(sed -n 's/.*Overall exposure level for skillvmd.service: \([0-9.]*\) .*/\1/p' "$work/security")
    grep -q "puts it at $figure with it" docs/deploy.md ||
        complain "docs/deploy.md does not have the exposure with strict.conf, $figure"
else
    left_out+=('units: no systemd-analyze')
fi
# In no set of systemd's, or taken away with one: a later line has to give them back.
for call in capset landlock_create_ruleset landlock_restrict_self; do
    sed -n '/^SystemCallFilter=~/,$p' "$work/skillvmd.service" |
        grep -qE "^SystemCallFilter=([a-z_]+ )*$call( |\$)" ||
        complain "skillvmd.service does not allow $call, which no machine starts without"
done

pages=$(dirname "$program")/../api/pages
if command -v mandoc >/dev/null; then
    for manual in "$pages"/*.[1-8]; do
        mandoc -Tlint -Wwarning "$manual" >"$work/lint" || complain "mandoc: $(cat "$work/lint")"
    done
else
    left_out+=('manuals: no mandoc')
fi
while read -r name; do
    grep -q "\b$name(" "$pages/libskillvm.3" || complain "libskillvm.3 does not have $name"
done < <(nm -D --defined-only "$pages/../client/libskillvm.so" | grep -oE '\bskillvm_[a-z_]+')
"$pages/skillvm_pages" <docs/config.md >"$work/config.md"
if ! diff docs/config.md "$work/config.md" >"$work/diff"; then
    complain "docs/config.md (<) is not what skillvm_pages makes of it (>): $(cat "$work/diff")"
fi

# The sample is good as it is, and says what is the default but for where things are.
env -i "$program" --config "$pages/skillvmd.yaml" --check-config >/dev/null ||
    complain 'the sample settings are not good'
env -i "$program" --print-config >"$work/default"
env -i "$program" --config "$pages/skillvmd.yaml" --print-config >"$work/sample"
diff "$work/default" "$work/sample" | grep '^>' | cut -c3- >"$work/other" || true
if ! printf '  path: "/run/skillvm/skillvmd.sock"\ndata: "/var/lib/skillvm"\n' | diff - "$work/other"; then
    complain 'the sample settings are not the defaults'
fi

# An install without kernel and image fails and says how they are made.
build=$(dirname "$program")/..
export SKILLVM_SHARE=$work/guest
mkdir "$SKILLVM_SHARE"
if DESTDIR=$work/nothing cmake --install "$build" --component service >"$work/install" 2>&1; then
    complain 'an install without a guest kernel succeeds'
elif ! tr -s '\n ' ' ' <"$work/install" | grep -q 'vmlinux is not there.*--target kernel image'; then
    complain "an install without a guest kernel says: $(cat "$work/install")"
fi
touch "$SKILLVM_SHARE"/{vmlinux,python.erofs,{vmlinux,python}.sha256,python.{modules,manifest,packages,origin}}

# An install has what the unit names, and leaves settings alone that are there.
install() {
    DESTDIR=$work/root cmake --install "$build" --component service >"$work/install" 2>&1 ||
        complain "cmake --install: $(tail -n 5 "$work/install")"
}
install
unit=$(find "$work/root" -name skillvmd.service)
read -r start settings < <(sed -n 's/^ExecStart=\([^ ]*\) --config /\1 /p' "$unit")
for file in "$start" "$settings" "$(dirname "$start")/skillvm-"{jail,vmm} "$(dirname "$start")/skillvm" \
    "$(dirname "$start")"/../share/skillvm/strict.conf "$(dirname "$start")"/../share/skillvm/images/{build.sh,spdx.awk,image-tree,python.yaml,init,zygote/sitecustomize.py}; do
    [[ -e $work/root/$file ]] || complain "not installed: $file"
done
echo 'grace: 7s' >"$work/root/$settings"
install
grep -qx 'grace: 7s' "$work/root/$settings" || complain 'an install overwrites the settings'


# With a prefix of its own everything is below that, and finds itself.
DESTDIR='' cmake --install "$build" --component service --prefix "$work/prefix" >"$work/install" 2>&1 ||
    complain "cmake --install --prefix: $(tail -n 5 "$work/install")"
if grep 'Installing: ' "$work/install" | grep -vF "Installing: $work/prefix/" >"$work/outside"; then
    complain "an install with a prefix writes elsewhere: $(cat "$work/outside")"
fi
read -r start settings < <(sed -n 's/^ExecStart=\([^ ]*\) --config /\1 /p' \
    "$work/prefix/lib/systemd/system/skillvmd.service")
for file in "$start" "$settings" "$work/prefix/share/skillvm"; do
    [[ -e $file ]] || complain "not below the prefix: $file"
done

((failed)) && exit 1
if ((${#left_out[@]})); then
    printf 'skipped: %s\n' "${left_out[@]}"
    exit 77
fi
echo 'units, manuals and sample settings checked'
