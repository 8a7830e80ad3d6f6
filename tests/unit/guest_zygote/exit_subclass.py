class Stop(SystemExit):
    pass


print("probe:")
raise Stop(7)
