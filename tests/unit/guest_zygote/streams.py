import os
import sys

print("probe:")
for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__):
    print(stream, stream.encoding, stream.errors, stream.line_buffering, stream.write_through)
    print(stream.newlines, stream.isatty(), stream.fileno(), stream.seekable(), stream.mode)
    print(stream.buffer, type(stream.buffer), stream.buffer.raw, stream.buffer.raw.closefd)
print(sys.stdout is sys.__stdout__, sorted(os.listdir("/proc/self/fd")))
print("caf\u00e9 \U0001f600 \udcff")
sys.stdout.buffer.write(b"\xff\n")
sys.stdout.flush()
sys.stderr.write("unterminated")
