import asyncio


async def main():
    process = await asyncio.create_subprocess_exec("echo", "from a child")
    await asyncio.gather(process.wait(), asyncio.sleep(0.01))
    return "probe: done"


print(asyncio.run(main()))
