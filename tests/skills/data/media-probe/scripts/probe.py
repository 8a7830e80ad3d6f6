"""What is in media files; see SKILL.md."""

import json
import os
import struct
import subprocess
import wave
from pathlib import Path

from PIL import Image

FILES = Path(os.environ["SANDBOX_FILES_DIR"])


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)], check=True)


def probe(path):
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-print_format", "json", "-show_format", "-show_streams", path],
        capture_output=True, text=True, check=True,
    )
    told = json.loads(done.stdout)
    streams = {s["codec_type"]: s for s in told["streams"]}
    about = {"format": told["format"]["format_name"].split(",")[0], "seconds": round(float(told["format"]["duration"]), 1)}
    if "video" in streams:
        video = streams["video"]
        about["video"] = [video["codec_name"], video["width"], video["height"]]
    if "audio" in streams:
        about["audio"] = [streams["audio"]["codec_name"], int(streams["audio"]["sample_rate"])]
    return about


def crossings(path):
    """How often the tone goes through zero upwards: its frequency over a second."""
    with wave.open(str(path)) as file:
        data = file.readframes(file.getnframes())
        samples = struct.unpack(f"<{len(data) // 2}h", data)
    return sum(a < 0 <= b for a, b in zip(samples, samples[1:]))


given = sorted(Path(os.environ["SANDBOX_INPUT_DIR"]).iterdir())
if not given:
    clip = FILES / "clip.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=1",
           "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=16000:duration=1",
           "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", clip)
    given = [clip]
told = {}
for path in given:
    told[path.name] = probe(path)
clip = given[0]
ffmpeg("-i", clip, "-vn", "-ac", 1, FILES / "tone.wav")
ffmpeg("-i", clip, "-ss", "0.5", "-frames:v", 1, FILES / "still.png")
ffmpeg("-i", clip, "-t", "0.5", "-vf", "scale=80:-1", "-c:v", "libvpx", "-b:v", "100k", "-an", FILES / "short.webm")
ffmpeg("-i", FILES / "tone.wav", "-c:a", "libmp3lame", FILES / "tone.mp3")
still = Image.open(FILES / "still.png")
print(json.dumps({
    "clip": told[clip.name],
    "short": probe(FILES / "short.webm"),
    "mp3": probe(FILES / "tone.mp3")["audio"][0],
    "still": [still.format, *still.size, len(still.quantize(8).getcolors())],
    "tone_near_440": abs(crossings(FILES / "tone.wav") - 440) < 30,
}))
