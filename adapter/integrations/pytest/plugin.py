"""Provide pytest fixtures that replay a recording instead of using a model, or record a new one.

pytest loads this module in every run if the package is installed. The module therefore contains only the code that is
needed without these fixtures. Everything else is imported when a test uses a fixture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from adapter.integrations.pytest.replay_clients import Client

OPTION = "--record-model"
MARKER = "answers(k): run the test on each of k recorded answers (from toolcall-adapter)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("toolcall-adapter").addoption(
        OPTION,
        metavar="URL[#MODEL]",
        help="record new responses for tests that use `replayed`, from the model server at URL (API key: "
        "OPENAI_API_KEY); MODEL replaces the model that the tests request",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if config.getoption(OPTION) and config.getoption("numprocesses", None):
        raise pytest.UsageError(f"{OPTION} records one test at a time; remove -n")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("answers")
    if marker is None:
        return
    if "_run" not in metafunc.fixturenames:
        pytest.fail("@pytest.mark.answers(k) is for tests that use `replayed` or `async_replayed`", pytrace=False)
    if len(marker.args) != 1 or not isinstance(marker.args[0], int) or marker.args[0] < 1:
        pytest.fail(f"@pytest.mark.answers(k) takes the number of answers, got {marker.args}", pytrace=False)
    count = marker.args[0]
    metafunc.parametrize("_run", range(count), ids=[f"answer{number}" for number in range(1, count + 1)], indirect=True)


@pytest.fixture
def _run(request: pytest.FixtureRequest) -> int:
    """Index of the recorded answer that the test uses."""
    return int(getattr(request, "param", 0))


@pytest.fixture
def replayed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _run: int
) -> Iterator[Callable[..., OpenAI]]:
    """Create an ``OpenAI`` client that replays a recording: ``replayed("tests/said.jsonl")``; see docs/testing.md."""
    from openai import OpenAI

    replays = _Replays(request, tmp_path_factory, _run)
    yield partial(replays.create_client, OpenAI)
    replays.save_recordings()


@pytest.fixture
def async_replayed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _run: int
) -> Iterator[Callable[..., AsyncOpenAI]]:
    """Create an ``AsyncOpenAI`` client that replays a recording: ``async_replayed("tests/said.jsonl")``."""
    from openai import AsyncOpenAI

    replays = _Replays(request, tmp_path_factory, _run)
    yield partial(replays.create_client, AsyncOpenAI)
    replays.save_recordings()


class _Replays:
    """Creates the clients of one test, and saves its new recordings."""

    def __init__(self, request: pytest.FixtureRequest, folders: pytest.TempPathFactory, run: int) -> None:
        self._node, self._root, self._run = request.node.nodeid, request.config.rootpath, run
        self._folders = folders
        self._url: str | None = request.config.getoption(OPTION)
        self._new_recordings: dict[Path, Path] = {}
        """Maps each new recording to its temporary file, until the test ends."""

    def create_client(self, kind: type[Client], file: str | Path, *, in_order: bool = False, **options: Any) -> Client:
        """Create a client for ``file``, a path relative to pytest's root folder.

        If ``in_order`` is True, each request gets the next answer, regardless of its content. ``options`` are options
        of `adapter.wrap`, used while recording.
        """
        from adapter.core.errors import UsageError

        try:
            if self._url:
                return self._create_recording_client(kind, self._root / file, self._url, options)
            return self._create_replaying_client(kind, self._root / file, in_order, options)
        except UsageError as error:
            self._fail(str(error))

    def _create_replaying_client(
        self, kind: type[Client], file: Path, in_order: bool, options: dict[str, Any]
    ) -> Client:
        from adapter.core.text.redaction import Redactor
        from adapter.integrations.pytest.recording_files import load_exchanges
        from adapter.integrations.pytest.replay_clients import create_replay_client
        from adapter.integrations.pytest.replay_matching import ReplayModel

        exchanges, has_own_exchanges = load_exchanges(file, self._node)
        run = 0 if has_own_exchanges else self._run
        recorded = ReplayModel(exchanges, file.name, Redactor(os.environ), run=run, in_order=in_order)
        return create_replay_client(recorded, kind, self._fail, stream_arguments=options.get("stream_arguments", False))

    def _create_recording_client(self, kind: type[Client], file: Path, url: str, options: dict[str, Any]) -> Client:
        from adapter.backends.endpoint_discovery import build_api_url
        from adapter.integrations.openai_client.wrap import wrap
        from adapter.integrations.pytest.replay_clients import create_renamed_client

        address, _, model = url.partition("#")
        if file not in self._new_recordings:
            self._new_recordings[file] = self._folders.mktemp("recorded") / file.name
        unwrapped = kind(base_url=build_api_url(address), api_key=os.environ.get("OPENAI_API_KEY") or "none")
        client = wrap(unwrapped, record=self._new_recordings[file], **options)
        return create_renamed_client(client, model) if model else client

    def save_recordings(self) -> None:
        """Save new recordings under their final names."""
        from adapter.integrations.pytest.recording_files import replace_conversation

        for file, recorded in self._new_recordings.items():
            replace_conversation(file, self._node, recorded)

    def _fail(self, message: str) -> NoReturn:
        hint = f"To record it again: pytest '{self._node}' {OPTION} URL[#MODEL]"
        raise pytest.fail.Exception(f"{message}\n{hint}", pytrace=False) from None
