"""Names that models use for common arguments, one list per meaning.

A dialect uses a whole list as aliases for one of its arguments; `adapter.tools.call_normalization` uses some lists for
any tool. A name with several meanings is in several lists: ``from`` may be a path or an old text.
"""

from __future__ import annotations

PATH = ("path", "file_path", "filepath", "filename", "file", "file_name", "target_file", "absolute_path")
DIRECTORY = ("dir", "directory", "dir_path", "directory_path", "folder", "root")
WORKING_DIRECTORY = ("cwd", "workdir", "work_dir", "working_directory", *DIRECTORY)
SOURCE = ("source", "src", "src_path", "source_path", "from", "old_path")
DESTINATION = ("destination", "dest", "dst", "dest_path", "destination_path", "to", "target", "new_path")
CONTENT = ("content", "contents", "text", "data", "file_content", "file_text", "new_content")
OLD_TEXT = ("old_text", "old_string", "old_str", "old_content", "old", "search", "from")
NEW_TEXT = ("new_text", "new_string", "new_str", "new_content", "new", "replace", "to")
PATTERN = ("pattern", "query", "regex", "search", "search_term", "search_query", "q")
COMMAND = ("command", "cmd", "command_line", "shell_command", "script")


def normalize_key(name: str) -> str:
    """Return ``name`` in lower case without separators, so that all its spellings are equal."""
    return name.replace("_", "").replace("-", "").lower()
