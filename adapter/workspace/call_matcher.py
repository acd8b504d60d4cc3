"""Match a model's call to a tool of the session, and explain why a tool is not available."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import NoneType

from adapter.core.callback_checks import require_result
from adapter.core.errors import FormatError, ToolError
from adapter.core.events import Json
from adapter.dialects import Dialect
from adapter.dialects.call_translation import extract_apply_patch, translate_call
from adapter.tools.call_normalization import normalize_call
from adapter.tools.call_validation import MatchedCall, validate_call
from adapter.tools.decoded_json_calls import parse_arguments
from adapter.tools.operations import Effect
from adapter.tools.operations.capabilities import ABSENT
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


@dataclass(frozen=True, slots=True)
class CallMatcher:
    """Validates the calls of a session. ``known`` are its tools, and ``offered`` the tools that can run here.

    ``allowed`` has the effects that calls may have, or is None if calls may have any effect.
    """

    dialect: Dialect
    known: ToolSet
    offered: ToolSet
    allowed: frozenset[Effect] | None

    def validate(self, name: str, arguments: Mapping[str, Json] | str) -> MatchedCall:
        """Validate a call. A call to a tool of another dialect is translated. Raises ToolError if the call is invalid,
        or the tool is not offered."""
        patch = extract_apply_patch(arguments)
        if patch is not None:
            call = self.validate("apply_patch", {"patches": patch})
            return replace(call, notes=(*call.notes, f"{name} was not run: the patch in its command was applied"))
        self._check_present(name)
        if self.offered.match(name) is None and self.dialect.tools.match(name) is None:
            translated = translate_call(name, arguments, self.offered, self.dialect)
            if translated is not None:
                return translated
        return validate_call(name, arguments, self.offered)

    def describe_failure(self, name: str, arguments: Mapping[str, Json] | str, error: ToolError) -> Json:
        """Return the fields of a failed call's result, or None if the dialect documents none."""
        tool = self.known.match(name)
        if tool is None or tool.failure is None:
            return None
        try:
            parsed, _ = parse_arguments(arguments)
        except FormatError:
            parsed = {}
        data = tool.failure(normalize_call(name, parsed, self.known)[1], error)
        require_result(tool.failure, "Tool.failure", data, (dict, list, str, int, float, NoneType), "JSON")
        return data

    def check_allowed(self, tool: Tool, effect: Effect) -> None:
        """Raise ToolError if a read-only session must not run a call with this effect."""
        if self.allowed is not None and effect not in self.allowed:
            raise ToolError(
                f"{tool.name} is not available to a read-only sub-agent; describe the change in your answer"
            )

    def _check_present(self, name: str) -> None:
        """Raise ToolError if a tool of the dialect is not available, with the reason and an alternative."""
        tool = self.known.match(name)
        if tool is None or tool.name in self.offered:
            return
        self.check_allowed(tool, tool.effect)
        if tool.needs is not None:
            why, instead = ABSENT[tool.needs]
            raise ToolError(f"{tool.name} is not available: {why}. {instead}")
        if tool.program:
            raise ToolError(f"{tool.name} is not available: {tool.program} is not installed here. Use another tool")
