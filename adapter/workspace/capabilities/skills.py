"""Skills: folders with a ``SKILL.md``, whose front matter names it and whose body is instructions for a model.

Format: https://agentskills.io/specification (front matter between ``---`` lines
with ``name`` and ``description``). ``title`` is optional: else the first heading, else the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import Skill
from adapter.workspace.files.read_file import text_at
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import files_below

FOLDERS = (".proxyai/skills", ".maki/skills", ".claude/skills", ".opencode/skills", ".adapter/skills")
"""In the workspace; of two skills with one title the first found wins."""
MAX_SKILLS = 100
"""Of one folder of skills."""

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_-]+):[ \t]*(.*)")
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


def find_skills(root: WorkspaceRoot, folders: Sequence[str] = ()) -> tuple[Skill, ...]:
    """The skills of the workspace and of the user's own ``folders``, by title."""
    found: dict[str, Skill] = {}
    for place in FOLDERS:
        for skill in _skills_in(root, place):
            found.setdefault(skill.title, skill)
    for folder in folders:
        path = Path(folder).expanduser()
        with suppress(UsageError), WorkspaceRoot(path) as other:  # one that is not there has no skills
            for skill in _skills_in(other, ".", str(path)):
                found.setdefault(skill.title, skill)
    return tuple(found.values())


def find_skill(skills: Sequence[Skill], name: str) -> Skill:
    """The skill with exactly this title, or else this name, in any case. Raises ToolError with the nearest ones."""
    wanted = name.strip()
    for key in (
        lambda skill: skill.title == wanted,
        lambda skill: skill.name == wanted,
        lambda skill: wanted.casefold() in (skill.title.casefold(), skill.name.casefold()),
    ):
        found = [skill for skill in skills if key(skill)]
        if found:
            return found[0]
    titles = [skill.title for skill in skills]
    near = [title for title, *_ in process.extract(wanted, titles, scorer=fuzz.WRatio, limit=3, score_cutoff=60)]
    suggestion = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    more = f"; of a folder the first {MAX_SKILLS} are looked at" if len(skills) >= MAX_SKILLS else ""
    raise ToolError(f"no skill is called {name!r}; there are: {', '.join(titles) or 'none'}{suggestion}{more}")


def parse_skill(text: str, folder: str) -> Skill | None:
    """The skill that a ``SKILL.md`` defines; None when it has no front matter, no name or no body."""
    text = text.replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    fields = dict(_fields(match[1])) if match else {}
    body = text[match.end() :].strip("\n") if match else ""
    name = fields.get("name", "")
    if not name or not body.strip():
        return None
    heading = _HEADING.search(body)
    title = fields.get("title") or (heading[1] if heading else name)
    return Skill(name, title, fields.get("description", ""), body, folder)


def _skills_in(root: WorkspaceRoot, place: str, shown: str = "") -> Iterator[Skill]:
    try:
        paths = [path for path in files_below(root, place) if path.endswith("/SKILL.md")]
    except (ToolError, OSError):
        return  # no such folder, or none for us
    for path in paths[:MAX_SKILLS]:
        folder = path.rpartition("/")[0]
        try:
            text = text_at(root, path)
        except (ToolError, UsageError, OSError):
            continue  # unreadable: as if it were not there
        skill = parse_skill(text, "/".join(part for part in (shown, folder) if part) or ".")
        if skill is not None:
            yield skill


def _fields(front: str) -> Iterator[tuple[str, str]]:
    """``key: value`` lines; a value may be quoted, or follow on indented lines (after ``>`` and ``|``)."""
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
