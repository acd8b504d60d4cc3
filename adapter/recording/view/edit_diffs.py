"""What each edit of a recorded conversation changed, as diffs: from the files at its start and the calls since then.

Nothing is run and nothing is read from disk. Where a text is not there as recorded, or no patch fits it exactly, the
diff is one of the patch alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from adapter.core.errors import AdapterError
from adapter.core.events import JsonObject
from adapter.core.text.diffs import unified_diff
from adapter.recording.transcript import StoredFile
from adapter.tools.operations import PatchFiles, PatchText, WriteText
from adapter.tools.operations.files import FileEdit, Patch, WholeFileRewrite
from adapter.tools.tool import Tool


class EditDiffs:
    """The texts of a workspace's files, as calls change them one after the other."""

    def __init__(self, files: Mapping[str, StoredFile]) -> None:
        self._texts = {path: stored.text for path, stored in files.items() if stored.text is not None}

    def diffs(self, tool: Tool | None, arguments: JsonObject, changed: Mapping[str, StoredFile | None]) -> list[str]:
        """Of a call that was done; none where it edits nothing. ``changed``: the files that the record has of it."""
        found = [self._became(path, stored.text if stored else "") for path, stored in changed.items()]
        return [diff for diff in [*found, *self._by_edits(tool, arguments)] if diff]

    def _by_edits(self, tool: Tool | None, arguments: JsonObject) -> list[str]:
        if tool is None or tool.validate is None or tool.effect == "read":
            return []
        try:
            operation = tool.validate(arguments).operation()
        except (ValidationError, AdapterError):
            return []
        match operation:
            case WriteText(path=path, content=content):
                return [self._became(path, content)]
            case PatchText(path=path, patches=patches):
                return self._patched(path, patches)
            case PatchFiles(files=files):
                return [diff for edit in files for diff in self._by_file(edit)]
            case _:
                return []

    def _by_file(self, edit: FileEdit) -> list[str]:
        if edit.action == "update":
            return self._patched(edit.path, edit.patches)
        return [self._became(edit.path, "" if edit.action == "delete" else edit.content)]

    def _patched(self, path: str, patches: tuple[Patch, ...]) -> list[str]:
        before = after = self._texts.get(path)
        for patch in patches:
            if after is not None and (after.count(patch.old_text) == 1 or patch.replace_all) and patch.old_text:
                after = after.replace(patch.old_text, patch.new_text)
            elif isinstance(patch, WholeFileRewrite):
                after = patch.new_text
            else:
                after = None
        if before is not None and after is not None:
            return [self._became(path, after)]
        self._texts.pop(path, None)
        return [unified_diff(_as_lines(patch.old_text), _as_lines(patch.new_text), path) for patch in patches]

    def _became(self, path: str, text: str | None) -> str:
        before = self._texts.get(path, "")
        self._texts[path] = text or ""
        return unified_diff(before, text or "", path)


def _as_lines(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"
