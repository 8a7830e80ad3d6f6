#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds a guest root image and prints its path, NAME.erofs; beside it NAME.modules lists what the
# recipe says is worth warming, NAME.packages what it is made of, NAME.manifest the modules and
# programs that a skill finds in it, NAME.origin where it came from, and NAME.sha256 is its checksum,
# without which no daemon uses it. Of a recipe:
#
#   images/build.sh --recipe images/python.yaml --tool build/bin/image-tree \
#       --input init=build/bin/skillvm-init --input zygote=build/share/zygote \
#       --input python=build/share/python/python3.11
#
# or of a container that was saved, to a file or as an OCI layout to a folder, with the same tool and
# inputs:
#
#   images/build.sh --archive FILE --name NAME --output DIR --tool …
#
# --output DIR puts these files into a folder that is there.
#
# Two stages: the root file system, of packages or of the container, and the image with our own
# files in it. With a recipe each is kept in the cache under the digest of everything that goes into
# it. Packages are resolved and fetched by apt from the machine's own sources; a container is
# a stranger's, and nothing of it is run. Root is not needed.
set -eu
# Whoever builds it, what is in it is for all, and so are its files.
umask 022

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-~/.cache}/skillvm/image
# The time of every file in the image: fixed, and late enough for zip archives, which start at 1980.
epoch=1672531200
recipe=
archive=
name=
output=
tool=
inputs=

die() {
    echo "image: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --recipe) recipe=$(realpath "${2:?}") && shift ;;
    --archive) archive=$(realpath "${2:?}") && shift ;;
    --name) name=${2:?} && shift ;;
    --output) output=$(realpath "${2:?}") && shift ;;
    --tool) tool=$(realpath "${2:?}") && shift ;;
    --input)
        case ${2:?} in
        *[[:space:]]*) die "white space in $2" ;;
        *=?*) inputs="$inputs ${2%%=*}=$(realpath "${2#*=}")" && shift ;;
        *) die "not NAME=PATH: $2" ;;
        esac
        ;;
    *) die "unknown argument $1 (--recipe FILE, or --archive FILE --name NAME --output DIR;" \
        "--tool image-tree, --input NAME=PATH)" ;;
    esac
    shift
done
[ -r "${archive:-$recipe}" ] || die "no such ${archive:+archive}${recipe:+recipe}: ${archive:-$recipe}"
[ -z "$archive" ] || [ -d "$output" ] || die "--archive needs --output"
[ -x "$tool" ] || die "no such tool: $tool (build the programs first)"
PATH=$PATH:/usr/sbin:/sbin
command -v mkfs.erofs >/dev/null || die "mkfs.erofs is not installed (Debian: erofs-utils)"
export LC_ALL=C TZ=UTC SKILLVM_RECIPES="$here"

digest() {
    sha256sum | cut -c 1-32
}

mkdir -p "$cache"
if [ -z "$archive" ]; then
    exec 9>"$cache/lock"
    flock 9
fi
work=$(mktemp -d "$cache/work.XXXXXX")
clean() {
    chmod -R u+rwX "$work"
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

# The second stage: what is in $work/tree becomes $work/image, with what of it is told.
finish() { # recipe
    # shellcheck disable=SC2086 # a list without spaces
    "$tool" add "$1" "$work/tree" $inputs || die "our own files cannot be put into $name"
    # Fixed, so that nothing but the content decides the bytes.
    uuid=$(echo "skillvm $name" | sha256sum | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\).*/\1-\2-\3-\4-\5/')
    mkfs.erofs --all-root -T "$epoch" -U "$uuid" -x -1 "$work/image" "$work/tree" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        die "mkfs.erofs failed"
    }
    chmod 0644 "$work/image"
    "$tool" show "$1" warm >"$work/modules"
    "$tool" contents "$work/tree" manifest "$work/packages" >"$work/found" || die "what $name holds cannot be told"
    "$tool" show "$1" memory | sed 's/^/memory /' >>"$work/found"
    sort -u "$work/found" >"$work/manifest"
    # A recipe says nothing of versions.
    sed 's/^\(node [^ ]*\) .*/\1/' "$work/manifest" | sort -u >"$work/names"
    "$tool" show "$1" brings | sort -u | comm -13 "$work/names" - >"$work/absent"
    [ ! -s "$work/absent" ] ||
        die "$name has not what its recipe says it brings: $(head -n 5 "$work/absent" | paste -sd ,)"
}

publish() { # folder: the image last, which is what is looked for
    echo "$(sha256sum <"$work/image" | cut -d ' ' -f 1)  $name.erofs" >"$work/sha256"
    for part in modules packages manifest origin sha256; do mv "$work/$part" "$1/$name.$part"; done
    mv "$work/image" "$1/$name.erofs"
    echo "$1/$name.erofs"
}

if [ -n "$archive" ]; then
    mkdir "$work/spool" "$work/tree"
    echo "image: unpacking ${archive##*/}" >&2
    printf 'archive %s\n' "$(printf %s "${archive##*/}" | tr '\n' '?')" >"$work/origin"
    "$tool" import "$archive" "$work/spool" "$work/tree" >>"$work/origin" ||
        die "${archive##*/} cannot be imported"
    rm -rf "$work/spool"
    "$tool" contents "$work/tree" debian | sort -u >"$work/packages"
    recipe=$here/imported.yaml
    [ "$("$tool" contents "$work/tree" fit "$work/packages")" != yes ] ||
        recipe=$here/imported-warm.yaml
    echo "image: putting $name together" >&2
    "$tool" unpack "$recipe" "$work/tree" || die "what a guest needs cannot be put into $name"
    finish "$recipe"
    publish "$output"
    exit
fi

# Where the recipe, or one that it extends, names a package.
find_line() { # package
    # shellcheck disable=SC2086 # a list of paths without spaces
    awk -v name="$1" '{ gsub(/[][,"\047]/, " ") }
        { for (i = 1; i <= NF; i++) if ($i == name) at = FILENAME " line " FNR }
        END { print at }' $sources
}

# apt with an empty machine to install into, so that it names every package that is needed. Of the
# recipe's suite, where this machine has them with its security and other updates.
apt() {
    apt-get -qq -y -o Dir::State::status="$work/status" -o Debug::NoLocking=1 \
        -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)" \
        -o APT::Default-Release="/^$("$tool" show "$recipe" suite)(-security|-updates)?\$/" \
        -o Acquire::ForceHash=SHA256 "$@"
}
mkdir -p "$work/archives/partial" "$cache/debs/partial" "$cache/resolved"
: >"$work/status"
name=$("$tool" show "$recipe" name)
packages=$("$tool" show "$recipe" packages)
[ -n "$packages" ] || die "$recipe names no packages"
# Its own file and those that it extends.
sources=$("$tool" show "$recipe" sources)

# What apt answers depends on its lists and settings only; asking takes a second.
question=$({
    # shellcheck disable=SC2086 # a list of paths without spaces
    cat $sources "$here/build.sh"
    ls -lnR --time-style=full-iso /var/lib/apt/lists /etc/apt 2>/dev/null
} | digest)
resolved=$cache/resolved/$question
if [ ! -s "$resolved" ]; then
    # shellcheck disable=SC2086 # a list of names
    apt -o Dir::Cache::archives="$work/archives" --print-uris install $packages \
        >"$work/uris" 2>"$work/log" || {
        grep -v '^E: Unable to locate package' "$work/log" >&2 || :
        absent=$(sed -n 's/^E: Unable to locate package //p' "$work/log")
        for package in $absent; do
            echo "image: $(find_line "$package"): apt knows no package $package" >&2
        done
        [ -z "$absent" ] || die "correct $recipe: \`apt-cache search WORD\` finds packages, and" \
            "\`apt-get update\` what is new or, on a new machine, all of them"
        die "apt cannot resolve the packages of $recipe: $(sed -n 's/^E: //p' "$work/log" |
            head -n 1) (no lists? apt-get update)"
    }
    # The address differs from machine to machine; file name and digest do not.
    awk '{ print $2, $4 }' "$work/uris" | sort >"$work/resolved"
    [ -s "$work/resolved" ] || die "apt resolved nothing"
    mv "$work/resolved" "$resolved"
fi

base_key=$({
    # shellcheck disable=SC2086
    cat "$resolved" $sources
    sha256sum <"$here/build.sh"
    sha256sum <"$tool"
} | digest)
base=$cache/rootfs-$base_key.tar

compile_python() {
    # The packages' own interpreter, one process and a fixed hash seed: the bytes of a .pyc depend
    # on both. -s and -p: the paths in tracebacks are those of the guest.
    loader=$(echo "$work"/rootfs/usr/lib/*/ld-linux-*.so.*)
    # shellcheck disable=SC2046 # a list of folders without spaces
    (cd "$work/rootfs" && PYTHONHOME="$PWD/usr" PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 \
        "$loader" --library-path "$(dirname "$loader")" usr/bin/python3 -S -s -E \
        -m compileall -q -f --invalidation-mode unchecked-hash -s "$PWD" -p / \
        $("$tool" show "$recipe" compile_python | sed "s,^,$PWD/,")) >&2
}

if [ ! -s "$base" ]; then
    echo "image: fetching $(wc -l <"$resolved") packages" >&2
    # shellcheck disable=SC2086
    apt -o Dir::Cache::archives="$cache/debs" -d install $packages >&2
    mkdir -m 0755 "$work/rootfs"
    echo "image: unpacking" >&2
    # shellcheck disable=SC2046 # file names of packages have no spaces
    (cd "$cache/debs" && "$tool" unpack "$recipe" "$work/rootfs" \
        $(cut -d ' ' -f 1 "$resolved"))
    if [ -n "$("$tool" show "$recipe" compile_python)" ]; then
        echo "image: compiling python's library" >&2
        compile_python
    fi
    if [ -x "$work/rootfs/usr/sbin/ldconfig" ]; then
        "$work/rootfs/usr/sbin/ldconfig" -r "$work/rootfs"
        rm -rf "$work/rootfs/var/cache/ldconfig"
    fi
    tar -C "$work/rootfs" --sort=name --mtime=@$epoch --owner=0 --group=0 --numeric-owner \
        --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
        -cf "$work/base.tar" .
    mv "$work/base.tar" "$base"
    clean
    mkdir "$work"
fi

# shellcheck disable=SC2086
image_key=$({
    echo "$base_key"
    mkfs.erofs --version 2>&1 | head -n 1
    for input in $inputs; do
        echo "${input%%=*}"
        (cd "${input#*=}" 2>/dev/null && find . -maxdepth 1 -type f -exec sha256sum {} + | sort) ||
            sha256sum <"${input#*=}"
    done
} | digest)
image=$cache/$image_key/$name.erofs
if [ ! -s "$image" ]; then
    echo "image: putting $name together" >&2
    mkdir "$work/tree"
    tar -C "$work/tree" -xpf "$base" --no-same-owner
    cp "$resolved" "$work/packages"
    echo "recipe ${recipe##*/}" >"$work/origin"
    finish "$recipe"
    mkdir -p "$cache/$image_key"
    publish "$cache/$image_key" >&2
fi
# The newest few are kept, one of each recipe at least: going back a commit is common, going back a
# week is not.
touch "$base" "$cache/$image_key" "$resolved"
prune() { # how-many find-arguments…
    keep=$1
    shift
    find "$cache" -mindepth 1 -maxdepth 1 "$@" -printf '%T@ %p\n' | sort -rn | tail -n +$((keep + 1)) |
        cut -d ' ' -f 2- | xargs -r rm -rf
}
prune 4 -name 'rootfs-*.tar'
prune 12 -type d -regex '.*/[0-9a-f]*'
find "$cache/resolved" -type f -mtime +30 -delete
if [ -n "$output" ]; then
    for part in modules packages manifest origin sha256 erofs; do
        cp --reflink=auto "$cache/$image_key/$name.$part" "$output/" || die "$name cannot be copied"
    done
    image=$output/$name.erofs
fi
echo "$image"
