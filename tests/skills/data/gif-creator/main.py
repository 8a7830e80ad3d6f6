"""A ball that bounces."""

import json
import os

import numpy as np
from PIL import Image, ImageDraw

from core.easing import bounce_out
from core.gif_builder import GIFBuilder
from core.validators import validate

builder = GIFBuilder(width=128, height=128, fps=10)
top = np.linspace(40, 90, 128, dtype=np.uint8)
sky = np.stack([np.broadcast_to(c[:, None], (128, 128)) for c in (top, top, np.full(128, 160, np.uint8))], axis=-1)
tops = []
for n in range(16):
    image = Image.fromarray(np.ascontiguousarray(sky))
    y = 8 + bounce_out(n / 15) * 80
    ImageDraw.Draw(image).ellipse((48, y, 80, y + 32), fill="#ffcc00", outline="#aa7700", width=2)
    builder.add_frame(image)
    yellow = (np.asarray(image) == (255, 204, 0)).all(axis=-1)
    tops.append(int(yellow.any(axis=1).argmax()))
path = os.environ["SANDBOX_FILES_DIR"] + "ball.gif"
builder.save(path, num_colors=48)
print(json.dumps({"gif": validate(path), "from": tops[0], "to": tops[-1], "bounces": min(tops[8:]) < tops[-1] - 5}))
