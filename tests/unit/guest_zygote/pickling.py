import pickle


class Thing:
    def __init__(self, x):
        self.x = x


data = pickle.dumps(Thing(3))
print("probe:", data, pickle.loads(data).x, Thing.__module__, Thing.__qualname__)
