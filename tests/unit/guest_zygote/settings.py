import faulthandler
import gc
import locale
import os
import resource
import sys
import threading

print("probe:", sys.flags, sys._xoptions, sys.warnoptions, sys.getrecursionlimit())
print(gc.get_threshold(), gc.isenabled(), gc.get_debug(), gc.callbacks, gc.garbage)
print(faulthandler.is_enabled(), sys.getswitchinterval(), sys.getprofile(), sys.gettrace())
print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)
print(sys.unraisablehook is sys.__unraisablehook__, sys.breakpointhook is sys.__breakpointhook__)
print([t.name for t in threading.enumerate()], threading.main_thread().ident == threading.get_ident())
print(threading.current_thread().native_id == os.getpid(), threading.active_count())
# bs4 imports html5lib, and with it six, where that is installed; in the images it is not.
print([f for f in sys.meta_path if type(f).__module__ != "six"])
print(sys.path_hooks, sys.dont_write_bytecode, sys.pycache_prefix)
print(locale.getlocale(), locale.getpreferredencoding(), sys.getfilesystemencoding())
print(locale.setlocale(locale.LC_ALL), sys.getfilesystemencodeerrors(), sys.getdefaultencoding())
print(oct(os.umask(0o22)), resource.getrlimit(resource.RLIMIT_STACK), sys.int_info)
print(sys.is_finalizing(), hasattr(sys, "last_type"), hasattr(sys, "ps1"), sys.platlibdir)
print(sys.getrefcount(sys.modules["__main__"]) < 20, sys.intern("abc") is "".join(["a", "bc"]))
