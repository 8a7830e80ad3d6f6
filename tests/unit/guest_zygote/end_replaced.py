# The streams were replaced; the replacements are flushed, and lose what they hold in order.
import io
import sys

print("probe:")


class Tee(io.TextIOBase):
    def write(self, text):
        return sys.__stdout__.write("tee " + text)

    def flush(self):
        sys.__stdout__.write("flushed\n")
        sys.__stdout__.flush()

    def __del__(self):
        sys.__stdout__.write("tee is gone\n")


sys.stdout = Tee()
sys.stderr = open("errors", "w")
print("through the tee")
