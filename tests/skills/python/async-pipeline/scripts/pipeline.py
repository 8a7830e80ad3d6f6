"""Many requests at once; see SKILL.md."""

import asyncio
import json
import os
import signal
from pathlib import Path

at_once = most = 0


async def serve(reader, writer):
    line = (await reader.readline()).decode().strip()
    if line == "17":
        await reader.read()
    else:
        await asyncio.sleep(0.01)
        writer.write(f"{int(line):03d} {int(line) ** 2}\n".encode())
        await writer.drain()
    writer.close()


async def ask(path, n, limit):
    global at_once, most
    async with limit:
        at_once += 1
        most = max(most, at_once)
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            writer.write(f"{n}\n".encode())
            async with asyncio.timeout(8):
                return (await reader.readline()).decode().strip()
        except TimeoutError:
            return None
        finally:
            writer.close()
            at_once -= 1


async def sort(lines):
    child = await asyncio.create_subprocess_exec(
        "sort", "-r", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate("\n".join(lines).encode())
    return child.returncode, out.decode().split("\n")


async def failing_group():
    ended = []

    async def long():
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def short():
        await asyncio.sleep(0.01)
        raise ValueError("short")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(long())
            group.create_task(short())
    except* ValueError as errors:
        ended += [str(error) for error in errors.exceptions]
    return ended


async def signals():
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(heard.wait(), 10)
    return heard.is_set()


async def main():
    path = "/tmp/lines.sock"
    limit = asyncio.Semaphore(5)
    async with await asyncio.start_unix_server(serve, path):
        answers = await asyncio.gather(*(ask(path, n, limit) for n in range(40)))
    status, lines = await sort([a for a in answers if a])
    Path(os.environ["SANDBOX_FILES_DIR"], "answers.txt").write_text("\n".join(lines))
    hashed = await asyncio.to_thread(lambda: sum(range(1000)))
    return {
        "answered": sum(a is not None for a in answers),
        "lost": [n for n, a in enumerate(answers) if a is None],
        "most_at_once": most,
        "sorted": [status, lines[0]],
        "group": await failing_group(),
        "signal": await signals(),
        "in_thread": hashed,
    }


print(json.dumps(asyncio.run(main())))
