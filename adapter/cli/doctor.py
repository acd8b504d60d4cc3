"""`adapter doctor`: what is there on this machine, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def doctor(
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="The folder to work in.")] = Path(),
    sandbox: Annotated[
        str, typer.Option(help="As for run; with require the exit code says whether there is one.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is there on this machine, what confines commands, what is missing, and what to do about it."""
    from adapter.cli.doctor_checks import run_checks
    from adapter.workspace.sandbox.sandbox import SandboxSettings

    findings = run_checks(str(workspace), SandboxSettings(sandbox))  # type: ignore[arg-type]  # checked by itself
    if as_json:
        rows = {finding.name: {"ok": finding.ok, "text": finding.text, **finding.data} for finding in findings}
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{'+' if finding.ok else '-'} {finding.name:<{width}}  {finding.text}")
        if not finding.ok and finding.advice:
            print(f"  {'':<{width}}  > {finding.advice}")
