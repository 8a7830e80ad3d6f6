# mode: module
# file: module_package/__init__.py print("probe: package", __name__)\n
# file: module_package/__main__.py import sys\nfrom . import other\nprint(__name__, __package__, sys.argv)\n
# file: module_package/other.py print("other", __name__)\n
