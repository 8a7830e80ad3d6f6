# The last collections happen whatever a script did with the collector.
import gc


class Noisy:
    def __init__(self, name):
        self.me = self
        self.name = name

    def __del__(self):
        print("gone", self.name)


print("probe:")
frozen = Noisy("frozen")
gc.freeze()
gc.unfreeze()
gc.collect()
gc.disable()
gc.callbacks.append(lambda phase, info: print("callback", phase))
Noisy("garbage")
kept = Noisy("kept")
