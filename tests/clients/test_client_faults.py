"""Unmodified libraries with a model server that fails in each way, streamed or not, and coding agents: the right answer
or an error with the reason, never half a call, and always an end.
"""

from __future__ import annotations

import re
import shutil

import pytest

from tests.clients.environments import Client, Command
from tests.clients.faults import SCRIPTS, FaultyServer, cases_of, find_failures, script_of
from tests.clients.listed import COMMANDS, LIBRARIES
from tests.serving import serving

SCRIPTED = {path.stem.replace("_", "-") for path in SCRIPTS.iterdir()}
PAIRS = [(client, way) for client in LIBRARIES if client.name in SCRIPTED for way in client.ways]


@pytest.mark.clients
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("client", "way"), PAIRS, ids=[f"{client.name}-{way}" for client, way in PAIRS])
def test_faults_reach_the_client(client: Client, way: str) -> None:
    if client.is_node and shutil.which("npm") is None:
        pytest.skip("needs npm")
    client.install()
    cases = cases_of("chat")
    with FaultyServer("chat") as upstream, serving(upstream.url, "--retry", "0") as url:
        said = client.run_program(script_of(client.name), way, url.removesuffix("/v1"), *cases)
    assert find_failures(said, cases) == []


@pytest.mark.clients
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["malformed", "429", "503", "error_event", "cut", "length"])
@pytest.mark.parametrize("agent", COMMANDS, ids=[agent.name for agent in COMMANDS])
def test_agents_end_with_a_message_or_an_answer(agent: Command, fault: str) -> None:
    if agent.is_node and shutil.which("npm") is None:
        pytest.skip("needs npm")
    agent.install()
    with FaultyServer("chat", fault) as upstream, serving(upstream.url, "--retry", "0") as url:
        try:
            said = agent.run(agent.ways[0], url.removesuffix("/v1"))
        except RuntimeError as error:  # it ended with an exit code, or not at all
            said = str(error)
    assert said.strip()
    assert not re.search("did not end within|<tool_call|get_weather", said)
