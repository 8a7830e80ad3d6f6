import asyncio

print("probe:", flush=True)


async def fail(n):
    raise ValueError(n)


async def main():
    async with asyncio.TaskGroup() as group:
        for n in range(2):
            group.create_task(fail(n))


asyncio.run(main())
