# SPDX-License-Identifier: Apache-2.0
"""What a skill finds in an image, one thing a line, for its manifest.

    manifest.py ROOT     run by the Python of the image whose files are in the folder ROOT

language NAME VERSION    an interpreter
package NAME VERSION     a distribution of Python's, its name in the form of PEP 503
standard NAME            a module or package of the standard library, its first name
module NAME              one that came with a package
"""
import importlib.machinery
import importlib.metadata
import pkgutil
import re
import sys

root = sys.argv[1]
library = f"{root}/usr/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
packages = f"{root}/usr/lib/python3/dist-packages"


def names(*folders):
    return {module.name for module in pkgutil.iter_modules(folders)}


# What iter_modules does not see: modules without a file. Names such as _sysconfigdata__x86 stay
# out, as nobody imports them by name.
frozen = {name for name in sys.stdlib_module_names if importlib.machinery.FrozenImporter.find_spec(name)}
standard = (names(library, f"{library}/lib-dynload") | set(sys.builtin_module_names) | frozen) & (
    set(sys.stdlib_module_names) | set(sys.builtin_module_names))
print("language python {}.{}.{}".format(*sys.version_info[:3]))
for found in importlib.metadata.distributions(path=[packages]):
    print("package", re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower(), found.version)
for name in standard:
    print("standard", name)
for name in names(packages) - standard:
    print("module", name)
