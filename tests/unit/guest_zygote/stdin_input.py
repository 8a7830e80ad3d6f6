print("probe:", [input("prompt> "), input()])
input()
