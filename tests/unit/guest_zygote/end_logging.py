import logging
import logging.handlers

print("probe:")
target = logging.FileHandler("log")
memory = logging.handlers.MemoryHandler(100, target=logging.StreamHandler())
logging.getLogger("x").addHandler(memory)
logging.getLogger("x").error("kept in memory until the end")
