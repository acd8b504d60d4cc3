"""``adapter plugin vllm | sglang``: what an engine is given to load our parsers where its entry points are off."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

PLUGINS = {"vllm": "adapter_vllm_plugin.py", "sglang": "sglang.py"}
"""By engine, the file in adapter/engines/."""


def plugin(engine: Annotated[Literal["vllm", "sglang"], typer.Argument(help="The engine.")]) -> None:
    """Print the file that gives an engine our parsers: vllm serve ... --tool-parser-plugin "$(adapter plugin vllm)"."""
    from pathlib import Path

    import adapter.engines

    typer.echo(Path(adapter.engines.__path__[0]) / PLUGINS[engine])
