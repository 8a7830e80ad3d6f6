# No module, path, importer or variable of the zygote's own may be visible.
import sys

print("probe:", sorted(n for n in sys.modules if "skillvm" in n or "zygote" in n))
print("sitecustomize" in sys.modules, "usercustomize" in sys.modules, sys.path)
print([p for p in sys.path_importer_cache if "zygote" in p])
print([n for n in ("skillvm", "zygote") for m in list(sys.modules.values()) if n in str(getattr(m, "__file__", ""))])
try:
    import _skillvm_zygote
except ImportError as error:
    print(error)
