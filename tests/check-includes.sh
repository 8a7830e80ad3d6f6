#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails on an #include that breaks the table of what each folder may use:
#
#   base        the C library
#   vmm         base, libfdt, libseccomp, KVM and Linux headers; never api or guest-init
#   guest-init  base, Linux headers (it links statically); its zygote module Python's
#   api         base, vmm/control.h, guest-init/proto.h and its libraries; never KVM
#   api/daemon/machine  of api: itself, limits.h, json and skill; no tenants, registry or HTTP
#   images      base, libarchive, libyaml
#   bench       base and libcurl: the public API only
#   tests       anything
#
# A header of a third party may be included by .c files only, so that its types stay out of our
# interfaces. Inside api, each library also belongs to named folders.

set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
complain() {
    printf '%s:%s: %s\n' "$1" "$2" "$3" >&2
    failed=1
}

# Headers of the C library, the kernel's UAPI and the compiler, as opposed to third parties.
declare -A platform=()
while read -r header; do
    platform[$header]=1
done < <(
    dpkg -L libc6-dev linux-libc-dev 2>/dev/null |
        sed -n -e "s,^/usr/include/$(gcc -print-multiarch)/\(.*\.h\)$,\1,p" \
            -e 's,^/usr/include/\(.*\.h\)$,\1,p'
    (cd "$(gcc -print-file-name=include)" && find . -name '*.h' -printf '%P\n')
)
if [[ -z ${platform[stdio.h]:-} ]]; then
    echo "check-includes: the packages libc6-dev and linux-libc-dev are needed" >&2
    exit 1
fi

check_ours() { # file line folder header
    local file=$1 line=$2 folder=$3 header=$4

    # Made by the build from vmm/seccomp_rules.c.
    [[ $folder:$header == vmm:seccomp_filters.h ]] && return
    if [[ ! -f $header ]]; then
        complain "$file" "$line" "\"$header\" is not a file; include with the full path from the root"
        return
    fi
    case $folder:$header in
    tests:*) ;;
    *:tests/*) complain "$file" "$line" "only tests may include $header" ;;
    *:base/*) ;;
    vmm:vmm/* | guest-init:guest-init/* | api:api/* | images:images/* | bench:bench/*) ;;
    api:vmm/control.h | api:guest-init/proto.h | vmm:guest-init/proto.h) ;;
    *) complain "$file" "$line" "$folder may not include \"$header\"" ;;
    esac
    # Machines do not know whose executions they run, nor who asked for them.
    if [[ $file == api/daemon/machine/* && $header == api/* ]]; then
        case $header in
        api/daemon/machine/* | api/daemon/terms/limits.h | api/json/* | api/skill/*) ;;
        *) complain "$file" "$line" "api/daemon/machine may not include \"$header\"" ;;
        esac
    fi
    # The VMM knows the guest's port and nothing else of its frames.
    if [[ $folder:$header == vmm:guest-init/* && $header != guest-init/proto.h ]]; then
        complain "$file" "$line" "vmm may not include \"$header\""
    fi
}

check_system() { # file line folder header
    local file=$1 line=$2 folder=$3 header=$4

    [[ $folder == tests ]] && return
    if [[ -n ${platform[$header]:-} ]]; then
        case $folder:$header in
        vmm:*) ;;
        *:linux/kvm.h | *:asm/kvm.h | *:linux/kvm_para.h | *:asm/kvm_para.h)
            complain "$file" "$line" "only vmm may include <$header>"
            ;;
        base:linux/* | base:asm/*)
            complain "$file" "$line" "base may include only the C library, not <$header>"
            ;;
        esac
        return
    fi
    case $folder:$header in
    vmm:libfdt.h | vmm:fdt.h | vmm:seccomp.h) ;;
    api:unistr.h | api:uninorm.h | api:unicase.h | api:unictype.h) ;;
    api:cjson/cJSON.h | api:yaml.h | api:archive.h | api:archive_entry.h) ;;
    api:microhttpd.h | api:sqlite3.h | api:curl/curl.h | api:openssl/evp.h | api:openssl/hmac.h) ;;
    images:archive.h | images:archive_entry.h | images:yaml.h) ;;
    bench:curl/curl.h) ;;
    guest-init:Python.h | guest-init:internal/pycore_*.h)
        [[ $file == guest-init/zygote/* ]] || complain "$file" "$line" "only the zygote may include <$header>"
        ;;
    *) complain "$file" "$line" "$folder may not include <$header>" ;;
    esac
    if [[ $file == *.h ]]; then
        complain "$file" "$line" "a header may not include <$header>: its types stay inside one .c"
    fi
}

checked=0
while IFS=: read -r file line text; do
    folder=${file%%/*}
    header=${text#*include}
    header=${header#"${header%%[<\"]*}"}
    case $header in
    \"*\"*) header=${header#\"} && check_ours "$file" "$line" "$folder" "${header%%\"*}" ;;
    \<*\>*) header=${header#<} && check_system "$file" "$line" "$folder" "${header%%>*}" ;;
    *) complain "$file" "$line" "an include that is neither \"file\" nor <file>" ;;
    esac
    checked=$((checked + 1))
done < <(find base vmm guest-init api images bench tests -name '*.[chS]' -print0 |
    LC_ALL=C sort -z | xargs -0 grep -nE '^[[:space:]]*#[[:space:]]*include' /dev/null)

# The KVM device's interface must not be reached around the headers either.
while IFS=: read -r file line _; do
    complain "$file" "$line" "only vmm may open /dev/kvm"
done < <(find base guest-init api images bench -name '*.[ch]' -print0 |
    xargs -0 grep -nE 'open[a-z0-9]*\([^)]*"/dev/kvm"' /dev/null)

((failed)) && exit 1
echo "$checked includes checked"
