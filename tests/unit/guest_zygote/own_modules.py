# file: helper.py import os\nvalue = os.path.basename(__file__)\n
# file: package/__init__.py \n
# file: package/deep.py from . import __name__ as parent\n
import helper
from package import deep

print("probe:", helper.value, helper.__name__, deep.parent, deep.__spec__.origin[-8:])
