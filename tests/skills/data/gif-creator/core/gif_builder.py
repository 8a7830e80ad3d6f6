"""Frames as a GIF with one palette; see SKILL.md."""

import imageio
import numpy as np
from PIL import Image


class GIFBuilder:
    def __init__(self, width, height, fps):
        self.size, self.fps, self.frames = (width, height), fps, []

    def add_frame(self, frame):
        image = Image.fromarray(frame) if isinstance(frame, np.ndarray) else frame
        if image.size != self.size:
            image = image.resize(self.size, Image.Resampling.LANCZOS)
        self.frames.append(np.asarray(image.convert("RGB")))

    def quantized(self, colors):
        every = Image.fromarray(np.vstack(self.frames[:: max(1, len(self.frames) // 5)]))
        palette = every.quantize(colors, method=Image.Quantize.MEDIANCUT)
        return [np.asarray(Image.fromarray(f).quantize(palette=palette, dither=0).convert("RGB")) for f in self.frames]

    def save(self, path, num_colors=128):
        imageio.mimsave(path, self.quantized(num_colors), format="GIF", duration=1 / self.fps, loop=0)
        return len(self.frames)
