import gc

print("probe:")


class Node:
    pass


node = Node()
node.me = node
gc.collect()
gc.set_debug(gc.DEBUG_SAVEALL)
other = Node()
other.me = other
