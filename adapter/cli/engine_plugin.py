"""`adapter plugin`: prints the path of an engine's plugin file, for use where the engine cannot load entry points."""

from __future__ import annotations

from typing import Annotated

import typer

PLUGINS = {"vllm": "adapter_vllm_plugin.py", "sglang": "sglang.py"}
"""Name of each engine's plugin file in adapter/integrations/engines/."""


def plugin(
    engine: Annotated[
        str, typer.Argument(help="Print the plugin file for this inference engine: vllm or sglang.", metavar="ENGINE")
    ],
) -> None:
    """Print the path of an engine's plugin file.

    Example: vllm serve ... --tool-parser-plugin "$(adapter plugin vllm)"
    """
    from pathlib import Path

    from adapter.core.errors import UsageError
    from adapter.integrations import engines

    if engine not in PLUGINS:
        names = ", ".join(PLUGINS)
        raise UsageError(f"no plugin for {engine!r}: expected {names}; `adapter serve` works without a plugin")
    typer.echo(Path(engines.__path__[0]) / PLUGINS[engine])
