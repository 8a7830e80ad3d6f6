#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check-includes.sh itself: in a copy of the tree each folder and room gets an include that it may
# not have, and every one of them is found. A row of docs/architecture.md that this list does not
# know fails too.

set -euo pipefail
cd "$(dirname "$0")/.."

# folder, then what it may not include: the room above it, a neighbour's library, KVM.
forbidden=(
    'base "api/json/json_text.h"' 'base <linux/random.h>'
    'vmm "api/daemon/machine/vm.h"' 'vmm "guest-init/run.h"'
    'guest-init "api/skill/tar.h"' 'guest-init <archive.h>' 'guest-init <Python.h>'
    'guest-init/zygote "vmm/control.h"'
    'images "api/skill/archive.h"' 'images <linux/kvm.h>'
    'bench "api/client/skillvm.h"' 'bench <nats/nats.h>' 'bench/fleet "api/daemon/cluster/driver.h"'
    'api/json "api/skill/skill.h"' 'api/json <cjson/cJSON.h>'
    'api/skill "api/daemon/routes/daemon.h"' 'api/skill "api/tools/parser.h"' 'api/skill <sqlite3.h>'
    'api/wheels "api/daemon/store/store.h"' 'api/wheels <cjson/cJSON.h>'
    'api/tools "api/daemon/terms/limits.h"' 'api/tools <yaml.h>'
    'api/daemon/terms "api/daemon/config/config.h"' 'api/daemon/terms <sqlite3.h>'
    'api/daemon/cluster "api/daemon/config/config.h"' 'api/daemon/cluster <nats/nats.h>'
    'api/daemon/nats "api/daemon/routes/daemon.h"' 'api/daemon/nats <sqlite3.h>'
    'api/daemon/config "api/daemon/registry/registry.h"' 'api/daemon/config <yaml.h>'
    'api/daemon/store "api/daemon/engine/result.h"' 'api/daemon/store "api/daemon/registry/registry.h"'
    'api/daemon/registry "api/daemon/store/store.h"' 'api/daemon/registry <archive.h>'
    'api/daemon/egress "api/daemon/terms/tenant.h"' 'api/daemon/egress <sqlite3.h>'
    'api/daemon/machine "api/daemon/registry/registry.h"' 'api/daemon/machine <linux/kvm.h>'
    'api/daemon/engine "api/daemon/http/http.h"' 'api/daemon/engine <sqlite3.h>'
    'api/daemon/http "api/daemon/engine/engine.h"' 'api/daemon/http <sqlite3.h>'
    'api/daemon/callers "api/daemon/routes/daemon.h"' 'api/daemon/callers <sqlite3.h>'
    'api/daemon/routes "api/daemon/lifecycle.h"' 'api/daemon/routes <sqlite3.h>'
    'api/daemon "api/cli/cli.h"' 'api/daemon "vmm/control.h"'
    'api/client "api/cli/cli.h"' 'api/client <archive.h>'
    'api/mcp "api/cli/cli.h"' 'api/mcp <cjson/cJSON.h>'
    'api/host "api/client/skillvm.h"' 'api/host <curl/curl.h>'
    'api/cli "api/daemon/config/config.h"' 'api/cli <curl/curl.h>'
    'api/pages "api/daemon/engine/engine.h"' 'api/pages <cjson/cJSON.h>'
)
# Rows without C of their own, and the one that may include anything.
plain=' kernel-config tests api/clients api/service '

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
find base vmm guest-init api images bench tests -name '*.[chS]' -print0 |
    tar --null -T - -cf - docs/architecture.md tests/check-includes.sh | tar -xf - -C "$copy"

failed=0
complain() {
    echo "check-includes-test: $1" >&2
    failed=1
}

"$copy/tests/check-includes.sh" >/dev/null || complain "it complains of what is right"

for line in "${forbidden[@]}"; do
    echo "#include ${line#* }" >>"$(find "$copy/${line%% *}" -maxdepth 1 -name '*.c' | sort | head -1)"
done
told=$("$copy/tests/check-includes.sh" 2>&1) && complain "it passes what is wrong"

known=$plain
for line in "${forbidden[@]}"; do
    folder=${line%% *} header=${line#* }
    known+="$folder "
    # What stands in front of it is a file right in that folder.
    grep -E "^$folder/[^/]*:[0-9]+: .*may.* include" <<<"$told" | grep -qF "$header" ||
        complain "$folder may include $header"
done
(($(grep -c . <<<"$told") == ${#forbidden[@]})) || complain "more was told than was wrong: $told"

# shellcheck disable=SC2016 # Markdown's backquotes
while read -r folder; do
    [[ $known == *" $folder "* ]] || complain "nothing is forbidden to $folder"
done < <(sed -nE 's,^\| `([a-z/-]+)/` \|.*,\1,p' docs/architecture.md)

((failed)) && exit 1
echo "${#forbidden[@]} forbidden includes found"
