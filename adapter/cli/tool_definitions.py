"""Read tool definitions from a JSON file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adapter.core.argument_checks import explain_read_error, format_value
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.tools.tool_set import ToolDefinitions


def read_tool_definitions(file: str) -> ToolDefinitions:
    """Return the tool definitions in ``file``, which may have any shape in `adapter.tools.definition_shapes`.

    Raises UsageError if the file cannot be read or is not a JSON list or object.
    """
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  # importing pathlib takes a third of an empty program's time
            definitions = json.load(opened)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read tool definitions from {file!r}: {explain_read_error(error)}") from error
    if not isinstance(definitions, list | dict):
        raise UsageError(f"{file!r} must contain a JSON list of tool definitions, got {format_value(definitions)}")
    return definitions
