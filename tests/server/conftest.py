"""Fixtures of the tests of the server, none of which is collected without the extra `server`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import openai
import pytest

from tests.server.clients import connected

collect_ignore_glob = [] if find_spec("starlette") and find_spec("aiohttp") else ["test_*.py"]


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    """A client of the module's server."""
    with connected(url) as client:
        yield client
