# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Skills that bring wheels, in a real machine.

make_wheel() {
    python3 "$E2E_ROOT/tests/e2e/make_wheel.py" "$@"
}

skill_in() { # folder: with a SKILL.md
    mkdir -p "$1"
    printf -- '---\nname: %s\ndescription: A skill of a test.\nversion: "1"\n---\n' "$1" >"$1/SKILL.md"
}

# Pure wheels, one of which requires the other: found by the script, by what it starts, and by a
# program of the wheel's; by the interpreter that waited, and by one that starts.
# limit packages_are_found 400
# long packages_are_found
case_packages_are_found() {
    skill_in pure
    make_wheel pure/wheels trial_top 1.2 --requires 'trial-base>=2; python_version > "3.8"' \
        --requires 'nowhere; sys_platform == "win32"' --requires 'pyyaml>=5' \
        --file 'trial_top/__init__.py=import trial_base, yaml
VALUE = "top of " + trial_base.VALUE
def main():
    print("program:", VALUE)' \
        --file 'trial_top-1.2.data/scripts/trial-script=#!python
import trial_top; trial_top.main()' \
        --file 'trial_top-1.2.dist-info/entry_points.txt=[console_scripts]
trial-program = trial_top:main'
    make_wheel pure/wheels trial_base 2.0 --file 'trial_base.py=VALUE = "base 2"'
    make_wheel pure/wheels trial_base 3.0 --tag py312-none-any --file 'trial_base.py=VALUE = "3"'
    echo 'trial_top==1.2  # and what it requires' >pure/requirements.txt
    cat >pure/main.py <<'P'
import importlib.metadata, json, os, subprocess, sys
import trial_top
def run(*args):
    return subprocess.run(args, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}).stdout.strip()
try:
    open(os.path.dirname(trial_top.__file__) + "/x", "w")
    kept = False
except OSError:
    kept = True
json.dump({"value": trial_top.VALUE, "version": importlib.metadata.version("trial-top"),
           "child": run(sys.executable, "-c", "import trial_top; print(trial_top.VALUE)"),
           "programs": [run("trial-script"), run("trial-program")], "read only": kept,
           "path": [p for p in sys.path if "packages" in p][:2],
           "same": run(sys.executable, "-c", "import sys; print(sys.path[1:])") == str(sys.path[1:])},
          open(os.environ["SANDBOX_OUTPUT"], "w"))
P
    local want='{"child":"top of base 2","path":["/usr/local/lib/python3.11/dist-packages","/usr/lib/python3/dist-packages"],"programs":["program: top of base 2","program: top of base 2"],"read only":true,"same":true,"value":"top of base 2","version":"1.2"}'
    expect 0 skillvm run pure --json
    equal "$(jq -cS .output <<<"$OUT")" "$want" "what it finds"
    equal "$(jq -c '[.packages[] | [.name, .version, .from, .file]]' <<<"$OUT")" \
        '[["pyyaml","6.0","image",null],["trial-base","2.0","skill","trial_base-2.0-py3-none-any.whl"],["trial-top","1.2","skill","trial_top-1.2-py3-none-any.whl"]]' \
        packages
    equal "$(jq -c .warnings <<<"$OUT")" '[]' warnings
    # By a plain interpreter, which a variable asks for.
    expect 0 skillvm run pure --json --env PYTHONDONTWRITEBYTECODE=1
    equal "$(jq -cS .output <<<"$OUT")" "$want" "what a plain interpreter finds"
    # Registered, and inspected.
    expect 0 skillvm skill push pure
    expect 0 skillvm run pure@1 --json
    equal "$(jq -cS .output <<<"$OUT")" "$want" "what it finds when it is registered"
    expect 0 skillvm skill inspect pure@1 -o json
    equal "$(jq -c '[(.packages | length), .warnings]' <<<"$OUT")" '[3,[]]' inspected
    # A .pth of a package has its say at the start.
    make_wheel pure/wheels trial_base 2.1 --file 'trial_base.py=import sys
VALUE = "base 2, start " + str(getattr(sys, "trial", None))' --file 'trial.pth=import sys; sys.trial = 1'
    expect 0 skillvm run pure --json
    equal "$(jq -c .output.value <<<"$OUT")" '"top of base 2, start 1"' "a .pth"
}

# limit native_packages_run 240
case_native_packages_run() {
    if ! command -v gcc >/dev/null || [[ ! -e /usr/include/python3.11/Python.h ]]; then
        skip "no compiler"
    fi
    cat >native.c <<'C'
#include <Python.h>
static PyObject *twice(PyObject *self, PyObject *args)
{
    long n;
    (void)self;
    return PyArg_ParseTuple(args, "l", &n) ? PyLong_FromLong(2 * n) : NULL;
}
static PyMethodDef methods[] = {{"twice", twice, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "", -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__native(void)
{
    return PyModule_Create(&module);
}
C
    gcc -shared -fPIC -I/usr/include/python3.11 -o native.so native.c
    skill_in native
    make_wheel native/wheels trial_native 1.0 --tag cp311-cp311-manylinux_2_36_x86_64 \
        --file 'trial_native/__init__.py=from ._native import twice' \
        --add 'trial_native/_native.cpython-311-x86_64-linux-gnu.so=native.so'
    printf 'import trial_native\nprint(trial_native.twice(21))\n' >native/main.py
    expect 0 skillvm run native
    equal "$OUT" 42 "a compiled module"
}

case_packages_that_do_not_fit_are_refused() {
    skill_in refused
    echo 'print(1)' >refused/main.py
    make_wheel refused/wheels trial_new 1.0 --tag cp312-cp312-manylinux2014_x86_64 --file 'x.py='
    expect 125 skillvm skill push refused
    contains "$ERR" 'wheels/trial_new-1.0-cp312-cp312-manylinux2014_x86_64.whl is for CPython 3.12' other
    contains "$ERR" 'the image has CPython 3.11' other
    rm refused/wheels/*
    make_wheel refused/wheels trial_top 1.0 --requires 'trial-base>=2' --file 'x.py='
    make_wheel refused/wheels trial_base 1.0 --file 'y.py='
    expect 125 skillvm skill push refused
    contains "$ERR" 'trial-base>=2, which wheels/trial_top-1.0-py3-none-any.whl requires, cannot be had: wheels/trial_base-1.0-py3-none-any.whl is version 1.0' unsatisfied
    echo 'absent==1' >refused/requirements.txt
    expect 125 skillvm skill push refused
    contains "$ERR" 'absent==1, which requirements.txt line 1 requires, is not there: put a wheel of it for CPython 3.11 on Linux x86_64 into wheels/' absent
    expect 125 skillvm run refused
    contains "$ERR" 'absent==1' "at a run"
}

snapshots_made() {
    http_expect 200 /metrics
    sed -n 's/^skillvm_snapshots_made_total{result="ok"} //p' <<<"$BODY"
}

# limit packages_that_a_snapshot_holds 600
# long packages_that_a_snapshot_holds
# Many packages of a registered skill are sent once, to the guest that a snapshot is made of; what
# the skill finds there is the same as before, and its other modules are those of a fresh start.
case_packages_that_a_snapshot_holds() {
    skill_in held
    python3 -c 'import random; print("TABLE =", [random.random() for _ in range(5000)])' >table.py
    make_wheel held/wheels trial_table 1.0 --add trial_table.py=table.py \
        --file 'decimal_notes.py=import decimal' --file 'trial_pure/__init__.py=VALUE = 1'
    cat >held/main.py <<'P'
import decimal, hashlib, json, os, sys
import trial_table, trial_pure
place = os.path.dirname(os.path.abspath(trial_table.__file__))
names = sorted(os.path.join(d, f) for d, _, files in os.walk("/sandbox/packages") for f in files
               if not f.endswith(".pyc"))
try:
    open(place + "/x", "w")
    kept = False
except OSError:
    kept = True
print("compiled" if os.path.exists(trial_table.__cached__) else "from its source")
json.dump({"n": len(trial_table.TABLE), "place": place, "kept": kept,
           "held": hashlib.sha256(repr([(n, os.stat(n).st_size, os.stat(n).st_uid, oct(os.stat(n).st_mode)) for n in names]).encode()).hexdigest()},
          open(os.environ["SANDBOX_OUTPUT"], "w"))
P
    skillvm skill push held >/dev/null
    local first found before known
    known=$(snapshots_made)
    first=$(skillvm run held@1 --json)
    equal "$(jq -c '[.status, .output.n, .output.kept]' <<<"$first")" '["success",5000,true]' "the first run"
    before=$(jq -r .snapshot <<<"$first")
    found=$first
    until [[ $(jq -r .snapshot <<<"$found") != "$before" ]]; do
        # Runs would only slow down what makes it.
        until (($(snapshots_made) > known)); do sleep 1; done
        known=$(snapshots_made)
        found=$(skillvm run held@1 --json)
        equal "$(jq -cS .output <<<"$found")" "$(jq -cS .output <<<"$first")" "what a run finds"
    done
    equal "$(jq -r .stdout <<<"$first") $(jq -r .stdout <<<"$found")" "from its source compiled" modules
    # A machine that holds them is put back as any other.
    found=$(skillvm run held@1 --json)
    equal "$(jq -cS .output <<<"$found")" "$(jq -cS .output <<<"$first")" "what a reused machine holds"
    skillvm skill rm held@1 >/dev/null
}
