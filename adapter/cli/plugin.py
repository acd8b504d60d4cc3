"""``adapter plugin vllm | sglang``: what an engine is given to load our parsers where its entry points are off."""

from __future__ import annotations

from typing import Annotated

import typer

PLUGINS = {"vllm": "adapter_vllm_plugin.py", "sglang": "sglang.py"}
"""By engine, the file in adapter/integrations/engines/."""


def plugin(engine: Annotated[str, typer.Argument(help="The engine: vllm or sglang.", metavar="ENGINE")]) -> None:
    """Print the file that gives an engine our parsers: vllm serve ... --tool-parser-plugin "$(adapter plugin vllm)"."""
    from pathlib import Path

    from adapter.core.errors import UsageError
    from adapter.integrations import engines

    if engine not in PLUGINS:
        there = ", ".join(PLUGINS)
        raise UsageError(f"no plugin for {engine!r}; there are: {there}. `adapter serve` in front of it needs none")
    typer.echo(Path(engines.__path__[0]) / PLUGINS[engine])
