"""Compute the diff of each edit in a transcript from the initial files and the recorded calls.

Nothing is run, and no file is read. If the text of a file is unknown, or a patch does not match it exactly, the diff
shows only the patch.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from adapter.core.errors import AdapterError
from adapter.core.events import JsonObject
from adapter.core.text.diffs import render_unified_diff
from adapter.recording.transcript_lines import StoredFile
from adapter.tools.operations import FileEdit, Patch, PatchFiles, PatchText, WholeFileRewrite, WriteText
from adapter.tools.tool import Tool


class EditDiffs:
    """Tracks the text of each file in the workspace while calls change it."""

    def __init__(self, files: Mapping[str, StoredFile]) -> None:
        self._texts = {path: stored.text for path, stored in files.items() if stored.text is not None}

    def render_diffs(
        self, tool: Tool | None, arguments: JsonObject, changed: Mapping[str, StoredFile | None]
    ) -> list[str]:
        """Return the diffs of a successful call. ``changed`` are the recorded file changes."""
        found = [self._replace_text(path, stored.text if stored else "") for path, stored in changed.items()]
        return [diff for diff in [*found, *self._diff_operation(tool, arguments)] if diff]

    def _diff_operation(self, tool: Tool | None, arguments: JsonObject) -> list[str]:
        if tool is None or tool.validate is None or tool.effect == "read":
            return []
        try:
            operation = tool.validate(arguments).to_operation()
        except (ValidationError, AdapterError):
            return []
        match operation:
            case WriteText(path=path, content=content):
                return [self._replace_text(path, content)]
            case PatchText(path=path, patches=patches):
                return self._apply_patches(path, patches)
            case PatchFiles(files=files):
                return [diff for edit in files for diff in self._diff_file(edit)]
            case _:
                return []

    def _diff_file(self, edit: FileEdit) -> list[str]:
        if edit.action == "update":
            return self._apply_patches(edit.path, edit.patches)
        return [self._replace_text(edit.path, "" if edit.action == "delete" else edit.content)]

    def _apply_patches(self, path: str, patches: tuple[Patch, ...]) -> list[str]:
        before = after = self._texts.get(path)
        for patch in patches:
            if after is not None and (after.count(patch.old_text) == 1 or patch.replace_all) and patch.old_text:
                after = after.replace(patch.old_text, patch.new_text)
            elif isinstance(patch, WholeFileRewrite):
                after = patch.new_text
            else:
                after = None
        if before is not None and after is not None:
            return [self._replace_text(path, after)]
        self._texts.pop(path, None)
        return [
            render_unified_diff(_terminate_line(patch.old_text), _terminate_line(patch.new_text), path)
            for patch in patches
        ]

    def _replace_text(self, path: str, text: str | None) -> str:
        before = self._texts.get(path, "")
        self._texts[path] = text or ""
        return render_unified_diff(before, text or "", path)


def _terminate_line(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"
