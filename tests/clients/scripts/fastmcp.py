"""fastmcp's client with `adapter mcp`: a ping, the tools, a call."""

import asyncio
import os

from fastmcp import Client


async def main() -> None:
    async with Client(os.environ["ADAPTER_URL"]) as client:
        assert await client.ping()
        assert "read_file" in [tool.name for tool in await client.list_tools()]
        print((await client.call_tool("read_file", {"path": "a.txt"})).content[0].text)


asyncio.run(main())
