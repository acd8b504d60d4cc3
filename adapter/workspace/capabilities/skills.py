"""Find and parse skills. A skill is a directory with a ``SKILL.md``, which contains instructions for a model.

The file starts with front matter between ``---`` lines, with a ``name`` and a ``description``
(https://agentskills.io/specification). If it has no ``title``, the title is the first heading, or the name if there is
no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import Skill
from adapter.workspace.files.read_file import read_text_unrecorded
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import list_files_below

DIRECTORIES = (".proxyai/skills", ".maki/skills", ".claude/skills", ".opencode/skills", ".adapter/skills")
"""Directories of skills in the workspace. If two skills have the same title, the first skill is used."""
MAX_SKILLS = 100
"""Maximum number of skills of a session."""
MAX_NAME, MAX_DESCRIPTION = 64, 1_024
"""Maximum lengths in characters, from the specification. Longer ones, and longer titles, are cut."""
MAX_FRONT_MATTER = 16 << 10
"""Maximum length of the front matter, in characters."""
MAX_SKILL_BYTES = 256 << 10
"""Maximum size of a ``SKILL.md``, in bytes. Larger files are left out."""

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_-]+):[ \t]*(.*)")
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


def find_skills(root: WorkspaceRoot, directories: Sequence[str] = ()) -> tuple[Skill, ...]:
    """Return the skills in the workspace and in the user's ``directories``, one for each title."""
    skills: dict[str, Skill] = {}
    for inside in DIRECTORIES:
        for skill in _load_skills(root, inside):
            skills.setdefault(skill.title, skill)
    for directory in directories:
        path = Path(directory).expanduser()
        with suppress(UsageError), WorkspaceRoot(path) as other:  # a missing directory has no skills
            for skill in _load_skills(other, ".", str(path)):
                skills.setdefault(skill.title, skill)
    return tuple(skills.values())[:MAX_SKILLS]


def find_skill(skills: Sequence[Skill], name: str) -> Skill:
    """Find a skill by its title, then by its name, then by either of them ignoring case.

    Raises ToolError, which suggests similar titles, if there is no such skill.
    """
    key = name.strip()
    named = [skill for skill in skills if key.casefold() in (skill.title.casefold(), skill.name.casefold())]
    if named:
        return max(named, key=lambda skill: (skill.title == key, skill.name == key))
    titles = [skill.title for skill in skills]
    near = [title for title, *_ in process.extract(key, titles, scorer=fuzz.WRatio, limit=3, score_cutoff=60)]
    suggestion = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    more = f"; at most {MAX_SKILLS} are used" if len(skills) >= MAX_SKILLS else ""
    raise ToolError(f"unknown skill {name!r}; available: {', '.join(titles) or 'none'}{suggestion}{more}")


def parse_skill(text: str, directory: str) -> Skill | None:
    """Parse a ``SKILL.md``. Return None if the name or the body is missing, or if the front matter is too long."""
    text = text.replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if match and match.end() > MAX_FRONT_MATTER:
        return None
    fields = dict(_parse_fields(match[1])) if match else {}
    body = text[match.end() :].strip("\n") if match else ""
    name = fields.get("name", "")
    if not name or not body.strip():
        return None
    heading = _HEADING.search(body)
    title = fields.get("title") or (heading[1] if heading else name)
    description = fields.get("description", "")
    return Skill(name[:MAX_NAME], title[:MAX_NAME], description[:MAX_DESCRIPTION], body, directory)


def _load_skills(root: WorkspaceRoot, start: str, shown: str = "") -> Iterator[Skill]:
    """Yield the skills below ``start`` in ``root``. ``shown`` precedes the directory that each skill names."""
    try:
        paths = [path for path in list_files_below(root, start) if path.endswith("/SKILL.md")]
    except (ToolError, OSError):
        return  # missing or unreadable directory
    for path in paths[:MAX_SKILLS]:
        directory = path.rpartition("/")[0]
        try:
            with root.locate(path) as file:
                if file.status is None or file.status.st_size > MAX_SKILL_BYTES:
                    continue
            text = read_text_unrecorded(root, path)
        except (ToolError, UsageError, OSError):
            continue  # an unreadable skill is left out
        skill = parse_skill(text, "/".join(part for part in (shown, directory) if part) or ".")
        if skill is not None:
            yield skill


def _parse_fields(front: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of ``key: value`` lines. A value may be quoted, or follow on indented lines."""
    lines = front.split("\n")
    for number, line in enumerate(lines):
        match = _FIELD.fullmatch(line.rstrip())
        if not match:
            continue
        key, value = match[1].lower(), match[2].strip()
        if value.rstrip("+-") in ("", ">", "|"):
            following = lines[number + 1 :]
            end = next((at for at, more in enumerate(following) if more.strip() and more[:1] not in " \t"), None)
            value = " ".join(more.strip() for more in following[:end] if more.strip())
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        yield key, value
