import sys


class Late:
    def __del__(self):
        try:
            import json

            print("imported", json.__name__)
        except Exception as error:
            print(type(error).__name__)


print("probe:")
sys.late = Late()
late = Late()
