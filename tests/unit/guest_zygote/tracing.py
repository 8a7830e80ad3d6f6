import sys
import tracemalloc

calls = []
sys.settrace(lambda frame, event, arg: calls.append((frame.f_code.co_name, event)))


def traced():
    return 1


traced()
sys.settrace(None)
tracemalloc.start(3)
data = [bytes(1000) for _ in range(10)]
frames = tracemalloc.take_snapshot().statistics("traceback")[0].traceback
print("probe:", calls[:3], [f.lineno for f in frames])
