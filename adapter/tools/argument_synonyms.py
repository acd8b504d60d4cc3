"""What models call common arguments, whatever the tool calls them: one list of names for each meaning.

A dialect takes all of a list for its own name, `adapter.tools.call_resolution` for tools of anybody. Names that mean
something else in other tools (``from`` is a path when moving) stand beside the list where they are taken.
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


def aliases_besides(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names beside ``name``."""
    return tuple(each for each in names if each != name)
