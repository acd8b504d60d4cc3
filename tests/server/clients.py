"""The openai SDK as a client of a server under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest

streamed_and_whole = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@contextmanager
def connected(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key="k", max_retries=0) as client:
        yield client
