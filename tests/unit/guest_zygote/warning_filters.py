import sys
import warnings

print("probe:", warnings.filters, warnings.defaultaction, sys.modules["warnings"] is warnings)
print(warnings._filters_version if hasattr(warnings, "_filters_version") else None)
