"""ProxyAI's tool that searches for files and symbols."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from adapter.core.events import JsonObject
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import DIRECTORY
from adapter.tools.operations import (
    FindSymbols,
    Operation,
    Outcome,
    SymbolContext,
    SymbolMatch,
    SymbolMatches,
    SymbolScope,
)

_CONTEXTS: dict[str, SymbolContext] = {
    "all": "any", "any": "any", "file": "files", "files": "files", "class": "classes", "classes": "classes",
    "type": "classes", "types": "classes", "symbol": "any", "symbols": "any", "function": "functions",
    "functions": "functions", "method": "functions", "methods": "functions", "variable": "variables",
    "variables": "variables", "field": "variables", "fields": "variables",
}  # fmt: skip


class IntelliJSearch(ToolClass):
    """Find files, classes and symbols by name, in the path of a directory or file scope, or globs of a custom one.

    Use it when the path is not known; it does not look into the text.
    """

    naming = ToolMetadata(
        "IntelliJSearch",
        aliases=("search", "search_files", "find_symbol"),
        example={"pattern": "UserService", "scope": "project"},
    )
    pattern: Annotated[
        str, Field(description="Name, or parts of it, to look for"), Aliases("searchText", "query", "nameKeyword")
    ]
    scope: Annotated[SymbolScope, Field(description="Where to look")] = "project"
    path: Annotated[
        str | None,
        Field(description="The directory or file of that scope; globs for custom"),
        Aliases("directoryToSearch", *DIRECTORY),
    ] = None
    fileType: Annotated[
        str | None, Field(description="Only this language or file extension"), Aliases("file_type", "language")
    ] = None
    context: Annotated[
        str | None,
        Field(
            description="Only these names: any, files, classes, functions or variables",
            json_schema_extra={"enum": ["any", "files", "classes", "functions", "variables"]},
        ),
    ] = None
    caseSensitive: Annotated[bool, Field(description="Heed upper and lower case")] = False
    regex: Annotated[bool, Field(description="The pattern is a regular expression")] = False
    wholeWords: Annotated[bool, Field(description="Match only whole words of the name")] = False
    outputMode: Annotated[Literal["content", "files_with_matches", "count"], Field(description="Output format")] = (
        "content"
    )
    limit: Annotated[
        int, Field(description="Most matches to give"), Aliases("maxUsageCount", "fileCountLimit", "max_results")
    ] = 10

    @field_validator("context")
    @classmethod
    def _check_context(cls, given: str | None) -> str | None:
        if given is not None and given.strip().lower() not in _CONTEXTS:
            raise ValueError(f"unknown context {given!r}; expected any, files, classes, functions or variables")
        return given

    @field_validator("limit")
    @classmethod
    def _check_limit(cls, given: int) -> int:
        if given < 1:
            raise ValueError(f"limit must be at least 1, got {given}")
        return given

    def to_operation(self) -> Operation:
        return FindSymbols(
            self.pattern,
            self.scope,
            self.path or ".",
            self.fileType,
            _CONTEXTS[(self.context or "any").strip().lower()],
            self.caseSensitive,
            self.regex,
            self.wholeWords,
            self.limit,
        )

    def render(self, outcome: Outcome) -> Rendered:
        found = require_outcome(outcome, SymbolMatches)
        matches = found.matches if self.outputMode == "content" else ()
        text = self._describe_matches(found)
        fields = {
            "pattern": self.pattern,
            "scope": self.scope,
            "totalMatches": len(matches) if self.outputMode == "content" else found.total,
            "matches": [_match_fields(match) for match in matches],
            "output": text,
        }
        return text, fields

    def _describe_matches(self, found: SymbolMatches) -> str:
        if not found.total:
            return f"No names match {self.pattern!r}."
        files = found.files[: self.limit]
        more = [f"({len(found.files) - len(files)} more files)"] if len(files) < len(found.files) else []
        match self.outputMode:
            case "files_with_matches":
                return "\n".join([*(path for path, _ in files), *more])
            case "count":
                counts = [f"{path}: {count}" for path, count in files]
                return "\n".join([f"{found.total} in all", *counts, *more])
        omitted = found.total - len(found.matches)
        rest = [f"({omitted} more; be more specific, or raise limit)"] if omitted else []
        return "\n".join(
            [*(f"{one.path}:{one.line}:{one.column}: {one.text} ({one.context})" for one in found.matches), *rest]
        )


def _match_fields(match: SymbolMatch) -> JsonObject:
    return {
        "file": match.path,
        "line": match.line,
        "column": match.column,
        "text": match.text,
        "context": match.context,
    }
