"""Run two agents concurrently. Cancelling one closes its connection, which stops its model.

a: It is empty.
b: It is empty.
"""

import asyncio
from pathlib import Path

from adapter import AsyncAgent


async def work(name: str) -> str:
    folder = Path("my-project", name)
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncAgent(folder, base_url="http://127.0.0.1:8080") as agent:
        done = await asyncio.wait_for(agent.run("Read notes.txt"), timeout=600)
        return f"{name}: {done.content}"


async def main() -> None:
    for answer in await asyncio.gather(work("a"), work("b")):
        print(answer)


asyncio.run(main())
