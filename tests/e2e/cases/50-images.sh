# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Images that were made here. Their daemon is one of their own, since a daemon looks for images
# when it starts.

# A root file system of Debian's, from the image that is there anyway, without what is only a guest's.
debian_root() { # folder
    fsck.erofs --extract="$1" "$(readlink -f "$SKILLVM_SHARE/python.erofs")" >fsck.out 2>&1 ||
        skip "fsck.erofs cannot extract: $(tail -n 1 fsck.out)"
    rm -rf "$1/usr/lib/skillvm" "$1/usr/sbin/skillvm-init" "$1/sandbox" "$1/etc/hosts" "$1/etc/hostname" \
        "$1/etc/resolv.conf"
}

# Another release of Debian's, from where this machine's own packages come: some with all that they need.
release_root() { # release folder package…
    local release=$1 folder=$2 from options package
    shift 2
    # shellcheck disable=SC2016 # apt's own
    from=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
        sed -n 's/ bookworm main$//p' | head -n 1)
    [[ -n $from ]] || skip "apt has no packages of bookworm's"
    mkdir -p "$folder" apt/lists/partial apt/archives/partial
    : >apt/status
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $release main" >apt/sources.list
    options=(-qq -y -o Dir::Etc::SourceList="$PWD/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State="$PWD/apt" -o Dir::State::status="$PWD/apt/status" -o Dir::Cache="$PWD/apt"
        -o Debug::NoLocking=1 -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)")
    apt-get "${options[@]}" update >apt.out 2>&1 || skip "apt-get update: $(tail -n 1 apt.out)"
    apt-get "${options[@]}" --download-only install "$@" >apt.out 2>&1 || skip "apt-get: $(tail -n 1 apt.out)"
    for package in apt/archives/*.deb; do
        dpkg-deb -x "$package" "$folder"
    done
    rm -rf apt
}

save() { # kind folder file more…
    python3 "$E2E_HERE/save_image.py" "$@"
}

own() { # a command with a daemon of its own, and images of its own
    env -u SKILLVM_SOCKET SKILLVM_DATA="$PWD/own" "$@"
}

# A share folder of links, each of whose files can be another.
own_share() { # folder
    mkdir -p "$1/images"
    find "$SKILLVM_SHARE" -mindepth 1 -maxdepth 1 ! -name images -exec ln -s -t "$1" {} +
    ln -s "$SKILLVM_SHARE"/images/* "$1/images/"
}

end_own() {
    own timeout 60 skillvm down || true
}

# limit the_image_has_its_updates 60
case_the_image_has_its_updates() {
    local newest
    newest=$(apt-cache policy python3.11-minimal | sed -n 's/^  Candidate: //p')
    [[ -n $newest && $newest != '(none)' ]] || skip "apt knows no python3.11-minimal"
    contains "$(<"$SKILLVM_SHARE/python.packages")" "python3.11-minimal_${newest}_" "its library"
    equal "$(dpkg-query -W -f '${Version}' libpython3.11-dev)" "$newest" "its interpreter"
}

case_an_image_says_what_it_is_made_of() {
    expect 0 skillvm image show python --spdx
    equal "$(jq -r '.spdxVersion, .documentNamespace' <<<"$OUT" | xargs)" \
        "SPDX-2.3 https://spdx.org/spdxdocs/skillvm-image-$(skillvm version | cut -d ' ' -f 2)-$(sha256sum <"$SKILLVM_SHARE/python.erofs" | cut -d ' ' -f 1)" \
        "which document"
    equal "$(jq -r '.packages[] | select(.externalRefs) | .checksums[0].checksumValue' <<<"$OUT" | sort | md5sum)" \
        "$(sed 's/.*SHA256://' "$SKILLVM_SHARE/python.packages" | sort | md5sum)" "its packages"
    expect 125 skillvm image show none-such --spdx
}

# limit imported_containers_run 900
# long imported_containers_run
case_imported_containers_run() {
    local code='import sys, own_module; print(sys.version_info[:2], own_module.said, sys.executable)'
    local port look='import socket, urllib.request
print(urllib.request.urlopen("http://daemon.example:1025/health").status)
try:
    socket.gethostbyname("other.example")
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)'
    local given_up=$'CapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2' status=/proc/self/status
    trap end_own EXIT
    debian_root root
    # The first layer has a module that the second takes away, and the second one of its own.
    mkdir -p root/usr/lib/python3/dist-packages more/usr/lib/python3/dist-packages \
        more/usr/local/lib/python3.11
    # Nor does its Python look for a skill's packages, as that of our own image does.
    : >more/usr/local/lib/python3.11/.wh.dist-packages
    echo 'said = "gone"' >root/usr/lib/python3/dist-packages/gone_module.py
    : >more/usr/lib/python3/dist-packages/.wh.gone_module.py
    echo 'said = "from a layer"' >more/usr/lib/python3/dist-packages/own_module.py
    # As dpkg tells which Python it is: then the one that waits fits.
    mkdir -p fits/var/lib/dpkg
    printf 'Package: python3.11-minimal\nStatus: install ok installed\nArchitecture: amd64\nVersion: %s\n' \
        "$(grep -o '^python3.11-minimal_[^_]*' "$SKILLVM_SHARE/python.packages" | cut -d _ -f 2)" \
        >fits/var/lib/dpkg/status
    save docker root cold.tar more
    save oci root warm.tar more fits
    # Without any Python.
    rm -rf root/usr/bin/python* root/usr/lib/python3*
    save docker root bare.tar
    gzip -1 bare.tar
    expect 0 own skillvm image import cold.tar
    expect 0 own skillvm image import warm.tar
    expect 0 own skillvm image import bare.tar.gz --name bare
    expect 0 own skillvm image list --json
    # Of the installation's own there may be more.
    equal "$(jq -c '[.images[] | select(.name | IN("node", "data", "office") | not) |
        [.name, .python, .warm, .bash]]' <<<"$OUT")" \
        '[["python","3.11",true,true],["bare",null,false,true],["cold","3.11",false,true],["warm","3.11",true,true]]' \
        "the list"
    expect 0 own skillvm image show warm --json
    equal "$(jq -c '.from.title, (.modules | index("own_module") != null, index("gone_module"))' <<<"$OUT" |
        xargs)" "example.org/tools:1 true null" "what the image shows"
    for image in cold warm; do
        mkdir "$image"
        printf -- '---\nname: %s\ndescription: a skill\nimage: %s\n---\n' "$image" "$image" >"$image/SKILL.md"
        echo "$code" >"$image/main.py"
    done
    mkdir bare
    printf -- '---\nname: bare\ndescription: a skill\nimage: bare\n---\n' >bare/SKILL.md
    # shellcheck disable=SC2016 # the skill's own
    echo 'read -r name </etc/hostname; echo bash says "$name"' >bare/main.sh
    # The daemon's own server is the host that skills may reach, and from outside of its machine
    # it is there too.
    printf 'network:\n  policy: declared\n  allow_private: daemon.example=10.0.2.15\n' >own.yaml
    port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    expect 0 own skillvm up --host "$E2E_HOST" --config own.yaml --listen "127.0.0.1:$port"
    expect 0 curl -sf -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/health"
    equal "$OUT" 200 "who is asked by TCP"
    for image in python cold warm; do
        expect 0 own skillvm run --image "$image" --network daemon.example:1025 --code "$look"
        equal "$OUT" $'200\nTrue' "hosts by name in $image"
    done
    expect 0 own skillvm run cold --json
    equal "$(jq -r '.stdout, .image, .warm' <<<"$OUT")" \
        "(3, 11) from a layer /usr/bin/python3"$'\n\ncold\nfalse' "the image whose Python is started"
    expect 0 own skillvm run warm --json
    equal "$(jq -r '.stdout, .image, .warm' <<<"$OUT")" \
        "(3, 11) from a layer /usr/bin/python3"$'\n\nwarm\ntrue' "the image whose Python waits"
    expect 0 own skillvm run bare --json
    equal "$(jq -r '.stdout, .image' <<<"$OUT")" "bash says sandbox"$'\n\nbare' "the image without Python"
    for image in cold warm bare; do
        expect 0 own skillvm run --image "$image" --lang bash --code "grep -E '^(CapBnd|NoNew|Seccomp:)' $status"
        equal "$OUT" "$given_up" "what is left in $image"
    done
    python3 "$E2E_HERE/make_wheel.py" cold/wheels trial 1.0 --file 'trial.py=VALUE = 1'
    expect 125 own skillvm run cold
    contains "$ERR" "cold looks for none, as none does that was imported" "why wheels are refused"
    expect 0 own skillvm down
}

# A Python that is not the one of the image `python`, in an image that was imported: hello, and a skill that imports a
# module of its image and parts of the library.
imported_python_runs() { # image, its Python, what that calls itself
    local image=$1 version=$2 itself=$3 code
    skill "$image" main.py "image: $image" <<'EOF'
import json, sqlite3, sys
import own_module
print(sys.implementation.name, sys.version_info[:2], own_module.said)
json.dump({"said": own_module.said}, open("/sandbox/out/output.json", "w"))
EOF
    expect 0 own skillvm up --host "$E2E_HOST"
    expect 0 own skillvm run --image "$image" --code 'print("hello")' --json
    equal "$(jq -c '[.stdout, .image, .warm]' <<<"$OUT")" "[\"hello\\n\",\"$image\",false]" "hello"
    expect 0 own skillvm run "$image" --json
    equal "$(jq -c '[.stdout, .output.said, .image, .warm]' <<<"$OUT")" \
        "[\"$itself (${version/./, }) from a layer\\n\",\"from a layer\",\"$image\",false]" "the image whose Python it is"
    expect 0 own skillvm skill push "$image"
    expect 0 own skillvm run "$image" --json
    equal "$(jq -c '[.status, .warm]' <<<"$OUT")" '["success",false]' "the same, registered"
    code='import subprocess, threading, asyncio, hashlib, ctypes
asyncio.run(asyncio.sleep(0))
print(subprocess.check_output(["python3", "-c", "print(1 + 1)"]).decode(), hashlib.sha256(b"").hexdigest()[:4])'
    expect 0 own skillvm run --image "$image" --code "$code" --json
    equal "$(jq -c '.stdout' <<<"$OUT")" '"2\n e3b0\n"' "what its library has"
}

# Debian's PyPy as python3, where its own CPython is too.
# limit an_imported_pypy_runs 900
# asked an_imported_pypy_runs
case_an_imported_pypy_runs() {
    local package
    trap end_own EXIT
    apt-get -qq download pypy3 pypy3-lib >apt.out 2>&1 || skip "apt-get: $(tail -n 1 apt.out)"
    debian_root root
    for package in pypy3*.deb; do
        dpkg-deb -x "$package" pypy
    done
    rm -rf pypy/usr/include pypy/usr/share
    ln -s pypy3 pypy/usr/bin/python3
    mkdir -p pypy/usr/lib/python3/dist-packages
    echo 'said = "from a layer"' >pypy/usr/lib/python3/dist-packages/own_module.py
    save docker root pypy.tar pypy
    expect 0 own skillvm image import pypy.tar
    rm -rf root pypy pypy.tar
    expect 0 own skillvm image show pypy --json
    equal "$(jq -c '[.python, .pypy, .warm, (.modules | index("own_module") != null)]' <<<"$OUT")" \
        '["3.9",true,false,true]' "what the image shows"
    expect 0 own skillvm image show pypy
    contains "$(tr -s ' ' <<<"$OUT")" $'python 3.9\npypy yes\n' "what a person is shown"
    imported_python_runs pypy 3.9 pypy
    # Packages are chosen for CPython.
    mkdir pypy/wheels
    python3 "$E2E_HERE/make_wheel.py" pypy/wheels trial 1.0 --file trial.py=
    expect 125 own skillvm run pypy
    contains "$ERR" "the image pypy has PyPy, not CPython" "wheels for PyPy"
    expect 0 own skillvm down
}

# The CPython of Debian's next release, in a root of that release: its C library is another, too.
# limit an_imported_python_3_13_runs 900
# asked an_imported_python_3_13_runs
case_an_imported_python_3_13_runs() {
    trap end_own EXIT
    release_root trixie root base-files bash coreutils python3
    mkdir -p layer/usr/lib/python3/dist-packages
    echo 'said = "from a layer"' >layer/usr/lib/python3/dist-packages/own_module.py
    save docker root trixie.tar layer
    expect 0 own skillvm image import trixie.tar
    rm -rf root layer trixie.tar
    expect 0 own skillvm image show trixie --json
    equal "$(jq -c '[.python, .pypy, .warm, (.modules | index("own_module") != null)]' <<<"$OUT")" \
        '["3.13",false,false,true]' "what the image shows"
    imported_python_runs trixie 3.13 cpython
    # shellcheck disable=SC2016 # the script's own
    expect 0 own skillvm run --image trixie --lang bash --code 'echo "$BASH_VERSION"'
    contains "$OUT" "5.2.37" "its bash"
    expect 0 own skillvm down
}

# limit images_that_cannot_be_made 300
case_images_that_cannot_be_made() {
    expect 125 own skillvm image import nothing.tar
    contains "$ERR" "No such file" "a file that is not there"
    echo hello >text.tar
    expect 125 own skillvm image import text.tar
    contains "$ERR" "text.tar cannot be imported" "a file that is no archive"
    mkdir empty
    tar -cf empty.tar empty
    expect 125 own skillvm image import empty.tar
    contains "$ERR" "neither oci-layout nor manifest.json" "an archive that is no image"
    save docker empty small.tar
    expect 0 own skillvm image import small.tar
    expect 125 own skillvm image import small.tar
    contains "$ERR" "there is an image small already" "a name that is taken"
    expect 125 own skillvm image import small.tar --name python
    contains "$ERR" "the installation has an image python" "the usual one's name"
    expect 125 own skillvm image import small.tar --name Big
    contains "$ERR" "lower-case letters" "a name that is none"
    save oci empty layout.tar
    mkdir layout
    tar -xf layout.tar -C layout
    expect 0 own skillvm image import layout/
    expect 0 own skillvm image show layout --json
    equal "$(jq -r '.from.archive, .from.sha256' <<<"$OUT" | xargs)" \
        "layout $(sha256sum <layout/index.json | cut -d ' ' -f 1)" "a folder"
    expect 0 own skillvm image rm layout
    # It is not read again: what takes its place is waited for by nobody.
    local digest
    digest=$(sha256sum <layout/index.json | cut -d ' ' -f 1)
    own_share share
    rm share/images/image-tree
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\n"%s" "$@" || exit\n[ "$1" != import ] || { rm "$2/index.json" && mkfifo "$2/index.json"; }\n' \
        "$SKILLVM_SHARE/images/image-tree" >share/images/image-tree
    chmod +x share/images/image-tree
    expect 0 own env SKILLVM_SHARE="$PWD/share" timeout -k 5 120 skillvm image import layout
    expect 0 own skillvm image show layout --json
    equal "$(jq -r .from.sha256 <<<"$OUT")" "$digest" "a folder whose index was replaced"
    expect 0 own skillvm image rm layout
    rm layout/oci-layout
    expect 125 own skillvm image import layout
    contains "$ERR" "it has no oci-layout" "a folder that is no image"
    mkfifo pipe
    expect 125 own skillvm image import pipe
    contains "$ERR" "neither a file nor a folder" "a pipe"
    expect 125 own skillvm image rm python
    contains "$ERR" "the installation's own" "removing the usual one"
    expect 0 own skillvm image rm small
    expect 125 own skillvm image rm small
    contains "$ERR" "no image small" "removing it twice"
    equal "$(ls -A own/images)" .lock "what is left"
    printf 'name: broken\nsuite: bookworm\npackages: [bash, no-such-package-anywhere, nor-this]\n' >broken.yaml
    expect 125 own skillvm image build broken.yaml
    contains "$ERR" "$PWD/broken.yaml line 3: apt knows no package no-such-package-anywhere" \
        "a package that does not exist"
    contains "$ERR" "$PWD/broken.yaml line 3: apt knows no package nor-this" "another one"
    contains "$ERR" "correct $PWD/broken.yaml: \`apt-cache search WORD\` finds packages" "what to do"
    printf 'name: boastful\nsuite: bookworm\npackages: [bash]\nbrings: [program bash, module numpy]\n' >boastful.yaml
    expect 125 own skillvm image build boastful.yaml
    contains "$ERR" "boastful has not what its recipe says it brings: module numpy" "a recipe that says too much"
    expect 125 own skillvm image build absent
    contains "$ERR" "no recipe absent.yaml" "a recipe that does not exist"
    equal "$(ls -A own/images)" .lock "what is left of a build"
    if ((EUID == 0)) && mkdir tiny && mount -t tmpfs -o size=1m tiny tiny; then
        head -c 3M /dev/urandom >empty/large
        save docker empty large.tar
        capture env XDG_CACHE_HOME="$PWD/tiny" SKILLVM_IMAGES="$PWD/own/images" skillvm image import large.tar
        umount tiny
        equal "$RC" 125 "the exit status of a full disk"
        contains "$ERR" "No space left on device" "a full disk"
    fi
}

# The smallest that has compiled Python in it, in another place, at another time and for whoever keeps
# others out of what they make.
# limit a_recipe_gives_the_same_each_time 300
# long a_recipe_gives_the_same_each_time
case_a_recipe_gives_the_same_each_time() {
    local place debs=${XDG_CACHE_HOME:-~/.cache}/skillvm/image/debs
    mkdir -p "$debs"
    printf '%s\n' 'name: small' 'suite: bookworm' 'packages: [python3-minimal]' \
        'compile_python: [usr/lib/python3.11]' >small.yaml
    for place in one other/place; do
        mkdir -p "$place/skillvm/image"
        ln -s "$debs" "$place/skillvm/image/debs"
    done
    expect 0 own env XDG_CACHE_HOME="$PWD/one" SKILLVM_IMAGES="$PWD/one/made" skillvm image build small.yaml
    umask 077
    expect 0 own env XDG_CACHE_HOME="$PWD/other/place" SKILLVM_IMAGES="$PWD/other/made" \
        TZ=Asia/Tokyo LANG=C skillvm image build small.yaml
    contains "$ERR" "putting small together" "that it was built again"
    equal "$(cd other/made && sha256sum small.*)" "$(cd one/made && sha256sum small.*)" "the same recipe, built again"
    equal "$(stat -c %a other/made/small.erofs)" 644 "who may read it"
}

case_an_operators_recipe_is_built() {
    own mkdir -p own/images/recipes
    printf 'name: own-python\nextends: python.yaml\nmemory: 384Mi\nfiles:\n  etc/own: |\n    mine\n' \
        >own/images/recipes/mine.yaml
    # What can be built is known before, and how.
    printf 'name: named\nextends: python.yaml\n' >own/images/recipes/named.yaml
    expect 0 own skillvm image list --json
    equal "$(jq -c '.not_built | index("named") != null' <<<"$OUT")" true "what can be built"
    expect 0 own skillvm image list
    contains "$OUT" "not built: skillvm image build named" "the list of what can be built"
    expect 125 own skillvm image show named
    contains "$ERR" "it is made by \`skillvm image build named\`" "one that is not built"
    expect 125 own skillvm image show nmed
    contains "$ERR" 'did you mean "named"?' "a near name"
    expect 125 own skillvm image build nmed
    contains "$ERR" 'did you mean "named"?' "a recipe of a near name"
    rm own/images/recipes/named.yaml
    expect 0 own skillvm image build mine
    expect 0 own skillvm image list --json
    equal "$(jq -c '[.images[] | select(.name == "own-python") | [.from.recipe, .warm, .installation]]' <<<"$OUT")" \
        '[["mine.yaml",true,false]]' "the image of a recipe"
    expect 0 own skillvm image show own-python --json
    equal "$(jq -r '.debian_packages | map(select(startswith("bash_"))) | length' <<<"$OUT")" 1 "its packages"
    equal "$(jq -c .memory_bytes <<<"$OUT")" $((384 << 20)) "the memory of who asks for none"
    expect 125 own skillvm image build python
    contains "$ERR" "the installation has an image python" "the usual one"
}
# limit an_operators_recipe_is_built 600

# The image of `data` takes five minutes of a processor at most, whatever else the machine does; to fetch what
# is not cached takes none.
# asked data_builds_in_time
# limit data_builds_in_time 3000
case_data_builds_in_time() {
    local debs=${XDG_CACHE_HOME:-$HOME/.cache}/skillvm/image/debs tools=$SKILLVM_SHARE/images
    local TIMEFORMAT='%U %S' status=0 seconds
    [[ -d $debs ]] || skip "no package was fetched yet"
    mkdir -p cache/skillvm/image made
    ln -s "$debs" cache/skillvm/image/debs
    { time XDG_CACHE_HOME=$PWD/cache "$tools/build.sh" --recipe "$tools/data.yaml" --tool "$tools/image-tree" \
        --input init="$tools/init" --input zygote="$tools/zygote" --input python="$tools/python" \
        --output made >built 2>said || status=$?; } 2>taken
    equal "$status" 0 "exit status of the build; $(tail -n 3 said)"
    seconds=$(awk '{ printf "%d", $1 + $2 }' taken)
    ((seconds < 300)) || fail "it took $seconds s of a processor"
}

# By the user on a terminal, for a module that a recipe of the installation brings; and then it is there.
# limit an_image_is_built_at_first_need 900
# long an_image_is_built_at_first_need
case_an_image_is_built_at_first_need() {
    local share=$PWD/share
    mkdir -p own/images/recipes needs
    own_share "$share"
    # Of a content of its own: what was built before comes from a cache, without a word.
    printf 'name: first\nextends: python.yaml\nfiles:\n  usr/lib/python3/dist-packages/own_module.py: |\n    said = "built %s"\nbrings: [module own_module]\n' \
        "$EPOCHREALTIME" >"$share/images/first.yaml"
    echo 'module own_module' >"$share/first.manifest"
    printf -- '---\nname: needs\ndescription: imports a module\n---\n' >needs/SKILL.md
    echo 'import own_module; print(own_module.said)' >needs/main.py
    printf 'name: broken\nsuite: bookworm\npackages: [no-such-package-anywhere]\n' >own/images/recipes/broken.yaml
    expect 125 own skillvm run --image broken --build-image --code 'print(1)'
    contains "$ERR" no-such-package-anywhere "a recipe that fails"
    mkdir -p wants/tests
    printf -- '---\nname: wants\ndescription: names an image\nimage: broken\n---\n' >wants/SKILL.md
    touch wants/main.py
    echo '{}' >wants/tests/one.json
    expect 125 own skillvm skill test wants --build-image
    contains "$ERR" no-such-package-anywhere "a recipe that fails, of a skill that is tested"
    expect 0 own env SKILLVM_SHARE="$share" skillvm skill lint needs
    contains "$ERR" "the image first has it, which is not installed here: \`skillvm image build first\` makes it" "what lint says"
    expect 0 own env SKILLVM_SHARE="$share" python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' skillvm run needs --host "$E2E_HOST" </dev/null
    contains "$OUT" "there is no image first yet: building it" "what is said"
    contains "$OUT" "putting first together" "the builder's progress"
    contains "$OUT" "built " "the skill's output"
    expect 0 own skillvm image list --json
    equal "$(jq -c '[.images[] | select(.name == "first") | .from.recipe]' <<<"$OUT")" '["first.yaml"]' "the list"
}
