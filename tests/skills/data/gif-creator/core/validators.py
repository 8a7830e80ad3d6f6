"""What a message accepts."""

import os

from PIL import Image, ImageSequence


def validate(path, emoji=True):
    with Image.open(path) as gif:
        frames = [(f.info["duration"], f.convert("RGB").copy()) for f in ImageSequence.Iterator(gif)]
        size, loop = gif.size, gif.info.get("loop")
    seconds = sum(duration for duration, _ in frames) / 1000
    return {
        "size": list(size),
        "frames": len(frames),
        "seconds": round(seconds, 2),
        "loop": loop,
        "colors": max(len(image.getcolors(1 << 16)) for _, image in frames),
        "moves": len({image.tobytes() for _, image in frames}) > 1,
        "accepted": os.path.getsize(path) < 64 * 1024 and seconds <= 3 and (not emoji or size == (128, 128)),
    }
