x: int = 1
y: str
print("probe:", __annotations__, __builtins__.__name__, "__annotations__" in globals())
import typing

print(typing.get_type_hints(__import__("__main__")))
