def f(:  # probe: the interpreter shows this line
