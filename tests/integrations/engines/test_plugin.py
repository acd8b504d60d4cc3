"""``adapter plugin`` prints the file for an engine, and the package declares entry points."""

from __future__ import annotations

import logging
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from adapter.cli.engine_plugin import PLUGINS, plugin
from adapter.core.errors import UsageError
from adapter.integrations.engines.engine_interfaces import warn_on_failure
from tests.integrations.engines.doubles import NEWEST, install_sglang, install_vllm

ROOT = Path(__file__).parents[3]
GROUPS = ("vllm.general_plugins", "sglang.srt.plugins")


def test_plugin_file_of_each_engine_exists():
    """vLLM loads it under its own file name, which must differ from vLLM's."""
    assert all((ROOT / "adapter" / "integrations" / "engines" / name).is_file() for name in PLUGINS.values())
    assert Path(PLUGINS["vllm"]).stem != "vllm"


def test_unknown_engine_error_lists_known_engines():
    with pytest.raises(UsageError, match="expected vllm, sglang"):
        plugin("llama.cpp")


def test_entry_points_are_callable():
    """As `pyproject.toml` declares them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for group in GROUPS:
        module, _, name = declared[group]["toolcall_adapter"].partition(":")
        assert callable(getattr(import_module(module), name))


class Panic(BaseException):
    """As extension modules raise it."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


FAILURES = [
    ImportError("no module"),
    AttributeError("moved"),
    TypeError("other arguments"),
    KeyError("name"),
    ValueError("name taken"),
    AssertionError(),
    OSError(2, "no file"),
    PermissionError(13, "denied"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    RecursionError("deep"),
    MemoryError(),
    SystemExit(1),
    Panic("rust"),
    Unprintable(),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("place", ["compat", "formats", "engine"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_no_failure_of_a_registration_reaches_the_engine(monkeypatch, caplog, engine, place, failure):
    """One warning for several calls, if our code, a format or the engine's registry fails."""
    module: Any = import_module(f"adapter.integrations.engines.{engine}")

    def fail(*_: Any, **__: Any) -> Any:
        raise failure

    if engine == "vllm":
        install_vllm(monkeypatch, NEWEST)
    else:
        install_sglang(monkeypatch, tells_more=True)
    match place:
        case "compat":
            monkeypatch.setattr(module, "VllmCompat" if engine == "vllm" else "SglangCompat", fail)
        case "formats":
            monkeypatch.setattr(module, "list_parser_names", fail)
        case _ if engine == "vllm":
            monkeypatch.setattr(module.VllmParserFactory, "register", fail)
        case _:
            monkeypatch.setattr(module, "create_parsers", fail)
    register = warn_on_failure(logging.getLogger("engine"))(module.register.__wrapped__)
    with caplog.at_level(logging.WARNING):
        assert [register() for _ in range(3)] == [False] * 3
    (record,) = caplog.records
    assert type(failure).__name__ in record.getMessage()


def test_interrupt_by_the_user_ends_a_registration():
    @warn_on_failure(logging.getLogger("engine"))
    def register() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        register()
