#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole test suite, on what ./dev build made; the last line is the totals.
#   run.sh                   what takes minutes
#   run.sh --long [NAME…]    what takes an hour or more: all of it, or those named
#   run.sh --long --list [NAME…]   their names; whether there are those that are named
# Exit status: 0 all passed, 1 some failed, 2 wrong usage.
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
build=$PWD/build
logs=$build/logs
. cmake/steps.sh
. tests/totals.sh
# Settings of somebody's own daemon are none of the tests'.
unset "${!SKILLVM_@}"

check_bench() { # title option…: passes when no execution failed, and shows its figures
    check "$1" /usr/bin/python3 -B bench/run.py --build "$build" --output "$build/bench-$1" \
        --no-plots --only executions --only peers --peers hello,bubblewrap,crun "${@:2}"
    cat "$step_log"
}

check_images() { # of what, target…: builds them, and the software host with them
    check "images: $1" cmake/build.sh release "${@:2}"
    check "software host with $1" cmake/build.sh release softhost
}

# The long runs by name, in the order they run in; each has a case in long_run.
long_runs=(cases package coverage tidy sanitizers skills node ratios jail imported owners clones siege floods relay categories resets programs trail crowd soak
    fleet pythons pythons-more cases-6.12 cases-vmx bench-6.12 bench-vmx)

long_run() { # name
    case $1 in
    cases) check_cases "$1" tests/e2e/run.sh --build "$build" --long ;;
    package) check_cases "$1" tests/package.sh --build "$build" ;;
    coverage) check_cases "$1" tests/coverage.sh ;;
    tidy)
        check "build: sanitize" cmake/build.sh sanitize
        check "$1" tests/check-tidy.sh --deep "$build" "$build-sanitize"
        ;;
    sanitizers)
        check "build: sanitize" cmake/build.sh sanitize all sanitizers
        check_ctest "$1" "$build-sanitize" sanitizers
        ;;
    skills)
        check_images "data and office" image-data image-office
        check_cases "$1" tests/e2e/run.sh --build "$build" --only up \
            --only skills_of_image_python --only skills_of_image_data \
            --only skills_of_image_office --only warm_numpy_draws_anew \
            --only data_builds_in_time
        ;;
    node)
        check_images Node image-node
        check_cases "$1" tests/e2e/run.sh --build "$build" --only node_ends_like_a_plain_one
        ;;
    ratios)
        check_images "Node and data" image-node image-data
        check "$1" /usr/bin/python3 -B bench/run.py --build "$build" --output "$build/bench-$1" \
            --no-plots --counting --only images --only peers --peers node --runs 5
        cat "$step_log"
        ;;
    jail)
        check "$1" /usr/bin/python3 -B bench/run.py --build "$build" --output "$build/bench-$1" \
            --no-plots --counting --only jail --runs 20
        cat "$step_log"
        ;;
    imported)
        check_cases "$1" tests/e2e/run.sh --build "$build" --only up --only an_imported_pypy_runs \
            --only an_imported_python_3_13_runs
        ;;
    owners)
        OWNER_RUNS=100 check_cases "$1" tests/e2e/run.sh --build "$build" --only owners_never_meet
        ;;
    clones)
        CLONES=100 check_cases "$1" tests/e2e/run.sh --build "$build" --only what_clones_share_is_known
        ;;
    siege)
        SIEGE_S=600 check_cases "$1" tests/e2e/run.sh --build "$build" \
            --only a_tenant_besieges_the_others_in_vain
        ;;
    categories)
        CATEGORIES=peers check_cases "$1" tests/e2e/run.sh --build "$build" \
            --only twenty_categories_leave_the_host_untouched
        ;;
    resets)
        SKILL_RESETS=5000 HOSTILE_RESETS=1000 \
            check_cases "$1" tests/e2e/run.sh --build "$build" --only 'resets_*'
        ;;
    programs)
        HOSTILE_PROGRAMS=1000000 \
            check_cases "$1" tests/e2e/run.sh --build "$build" --only 'programs_*'
        ;;
    floods)
        FLOOD_RUNS=100 check_cases "$1" tests/e2e/run.sh --build "$build" \
            --only floods_leave_a_neighbour_its_time
        ;;
    relay)
        RELAY_PERMITTED=10000 check_cases "$1" tests/e2e/run.sh --build "$build" \
            --only what_a_guest_holds_of_the_relay_is_bounded
        ;;
    trail)
        HOSTILE_EXECUTIONS=3000 \
            check_cases "$1" tests/e2e/run.sh --build "$build" --only hostile_executions_leave_no_trail
        ;;
    crowd)
        check "$1" /usr/bin/python3 -B bench/run.py --build "$build" --output "$build/bench-$1" \
            --no-plots --soft --only crowd --runs 5000
        cat "$step_log"
        ;;
    soak) check "$1" bench/soak.sh --build "$build" --mixed 8 10000 ;;
    fleet)
        check "build: chaos" cmake/build.sh release daemon_cluster_chaos
        CHAOS_EXECUTIONS=20000 CHAOS_FAULTS=60 SKILLVM_TEST_SOURCE=$PWD \
            check "$1" "$build/tests/daemon_cluster_chaos"
        cat "$step_log"
        ;;
    pythons) check_cases "$1" /usr/bin/python3 -B tests/pythons/run.py --build "$build" ;;
    pythons-more) check_cases "$1" /usr/bin/python3 -B tests/pythons/run.py --build "$build" --more ;;
    cases-6.12) check_cases "$1" tests/e2e/run.sh --build "$build" --long --kernel 6.12 ;;
    cases-vmx) check_cases "$1" tests/e2e/run.sh --build "$build" --long --vmx ;;
    bench-6.12) check_bench "$1" --kernel 6.12 --counting --runs 20 ;;
    bench-vmx) check_bench "$1" --vmx --counting --runs 5 ;;
    esac
}

run_suite() {
    local preset
    for preset in release sanitize; do
        check "build: $preset" cmake/build.sh "$preset"
    done
    check "clang-tidy" tests/check-tidy.sh "$build" "$build-sanitize"
    check_ctest "units and fuzz replay" "$build" 'release|fuzz' "$build-sanitize" 'unit|daemon|fuzz'
    check "MCP with the official client" tests/mcp/run.sh --build "$build"
    check_cases "end to end" tests/e2e/run.sh --build "$build"
}

usage() {
    sed -n '5,7p' "$0" | cut -c3- >&2
    exit 2
}

long='' list='' names=()
for word in "$@"; do
    case $word in
    --long) long=1 ;;
    --list) list=1 ;;
    -*) usage ;;
    *) names+=("$word") ;;
    esac
done
[[ $long || $# == 0 ]] || usage
for name in "${names[@]}"; do
    if [[ " ${long_runs[*]} " != *" $name "* ]]; then
        echo "run.sh: no long run is called $name (--long --list)" >&2
        exit 2
    fi
done
((${#names[@]})) || names=("${long_runs[@]}")
if [[ $list ]]; then
    printf '%s\n' "${names[@]}"
    exit
elif [[ $long ]]; then
    for name in "${names[@]}"; do
        long_run "$name"
    done
else
    run_suite
fi
print_totals
