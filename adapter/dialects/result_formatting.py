"""Results in words that several dialects share. Short lines, paths first, the next step where one is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from adapter.core.text.lines import split_lines, without_end
from adapter.core.text.plurals import pluralize
from adapter.tools.operations import (
    BatchResults,
    CodeOutput,
    CommandOutput,
    FilePatched,
    FilesPatched,
    FileText,
    FileWritten,
    GrepMatch,
    GrepResult,
    Listing,
    ListingEntry,
    MemoryChanged,
    MemoryList,
    MemoryNote,
    OperationDone,
    Page,
    PathList,
    ProgramOutput,
    SearchHits,
    TodoList,
    UserAnswers,
)
from adapter.tools.operations.agent_state import TodoStatus


def format_file(file: FileText) -> str:
    """The file's text as it is; a file without any says so, since models take no text for a failure."""
    return file.text or f"({file.path} is empty)"


def format_numbered_lines(file: FileText) -> str:
    """The lines with their numbers, under a line that says which of how many they are."""
    if file.total_lines == 0:
        return f"({file.path} is empty)"
    total = "a large file" if file.total_lines is None else file.total_lines
    head = f"File: {file.path}\nLines {file.start_line}-{file.end_line} (of {total}):"
    lines = (f"{number}: {without_end(line)}" for number, line in enumerate(split_lines(file.text), file.start_line))
    return "\n".join([head, *lines])


def page_of(file: FileText, max_bytes: int) -> tuple[FileText, bool]:
    """The lines of ``file`` that fit into ``max_bytes`` with their numbers, at least one; and whether more follow."""
    lines = split_lines(file.text)
    size = 0
    for count, (number, line) in enumerate(enumerate(lines, file.start_line)):
        size += len(f"{number}: {line}\n".encode())
        if size > max_bytes and count:
            end = file.start_line + count - 1
            return replace(file, text="".join(lines[:count]), end_line=end, truncated=True), True
    return file, file.truncated


def format_numbered_page(file: FileText, max_bytes: int, read_on: Callable[[int], str]) -> str:
    """``N: text``, line by line; when more follow, ``read_on`` says how to get line N and those after it."""
    if not file.text:
        return format_file(file)
    page, more = page_of(file, max_bytes)
    numbered = [f"{number}: {without_end(line)}" for number, line in enumerate(split_lines(page.text), page.start_line)]
    hint = [f"(lines {_lines_of(page)}; {read_on(page.end_line + 1)})"] if more else []
    return "\n".join([*numbered, *hint, *_notes(file.notes)])


def format_plain_page(file: FileText, max_bytes: int, read_on: Callable[[int], str]) -> str:
    """The text as it is; when more follows, under a line that says so and how to go on."""
    page, more = page_of(file, max_bytes)
    head = [f"Showing lines {_lines_of(page)} ({read_on(page.end_line + 1)}).", "---"] if more else []
    return "\n".join([*_notes(file.notes), *head, format_file(page)])


def _lines_of(file: FileText) -> str:
    total = "a large file" if file.total_lines is None else f"{file.total_lines}"
    return f"{file.start_line}-{file.end_line} of {total}"


def written_text(written: FileWritten) -> str:
    verb = "Created" if written.created else "Overwrote"
    return f"{verb} {written.path} ({pluralize(written.size, 'byte')})."


def patched_text(patched: FilePatched) -> str:
    """One sentence; when something was tolerated, what, and the diff to look it over."""
    count = f"{patched.count} patches" if patched.count != 1 else "1 patch"
    text = f"Applied {count} to {patched.path}."
    if not patched.notes:
        return text
    return "\n".join([text, *_notes(patched.notes), "Check the change:", patched.diff])


def files_patched_text(patched: FilesPatched) -> str:
    """What was done to each file; when something was tolerated, what, and the diff."""
    text = ", ".join(patched.done)
    text = f"{text[:1].upper()}{text[1:]}."
    if not patched.notes:
        return text
    return "\n".join([text, *_notes(patched.notes), "Check the change:", patched.diff])


def format_tree(listing: Listing) -> str:
    """The directory, then two spaces per level and ``/`` after directories."""
    head = f"{listing.path}/" if listing.path != "." else "./"
    lines = [
        "  " * entry.depth + entry.path.rpartition("/")[2] + ("/" if entry.is_directory else "")
        for entry in listing.entries
    ]
    if not lines:
        return f"{head} (empty)"
    if listing.omitted:
        lines.append(f"(showing {len(lines)} entries; {listing.omitted} more: list a directory in it, or ask for more)")
    return "\n".join([head, *lines, *_notes(listing.notes)])


def format_listing(
    listing: Listing, offset: int = 1, limit: int | None = None, read_on: Callable[[int], str] | None = None
) -> str:
    """The directory, then its entries one a line, size and time first where they are known, ``/`` after directories;
    of them ``limit`` from number ``offset`` on.

    ``read_on`` says how to get the entries from number N on; without it there is no way but a narrower listing.
    """
    head = f"{listing.path}/" if listing.path != "." else "./"
    total = len(listing.entries) + listing.omitted
    if not total:
        return "\n".join([f"{head} (empty)", *_notes(listing.notes)])
    shown = listing.entries[offset - 1 :][:limit]
    lines = [_details(entry) + entry.path + ("/" if entry.is_directory else "") for entry in shown]
    rest = []
    if len(shown) < total:
        end = offset + len(shown) - 1
        how = (
            read_on(end + 1) if read_on and end < len(listing.entries) else "ask for less: a directory in it, a pattern"
        )
        rest = [f"(entries {offset}-{end} of {total}" + (f"; {how})" if end < total else ")")]
    return "\n".join([head, *lines, *rest, *_notes(listing.notes)])


def _details(entry: ListingEntry) -> str:
    if entry.size is None:
        return ""
    return f"{'-' if entry.is_directory else entry.size:>10} {entry.modified} "


def format_paths(found: PathList, wanted: str) -> str:
    """One path a line."""
    if not found.paths:
        return "\n".join([f"No files match {wanted!r}.", *_notes(found.notes)])
    more = [f"(only the first {len(found.paths)} are shown; be more specific)"] if found.truncated else []
    return "\n".join([*found.paths, *more, *_notes(found.notes)])


def format_matches(found: GrepResult, wanted: str) -> str:
    """``filepath:line_number:line_content``, one match a line."""
    if not found.hits:
        return "\n".join([f"No matches for {wanted!r}.", *_notes(found.notes)])
    return "\n".join([*(f"{hit.path}:{hit.line}:{hit.text}" for hit in found.hits), *_notes(found.notes)])


def format_grouped_matches(found: GrepResult, wanted: str) -> str:
    """Under each path its matches, as ``  N: text``."""
    if not found.hits:
        return format_matches(found, wanted)
    groups = [
        "\n".join([f"{path}:", *(f"  {hit.line}: {hit.text}" for hit in hits)])
        for path, hits in groupby(found.hits, lambda hit: hit.path)
    ]
    return "\n".join([*groups, *unshown_matches(found), *_notes(found.notes)])


def unshown_matches(found: GrepResult) -> list[str]:
    """What a limit left out, as a line to put below; nothing when it left out nothing."""
    if found.total <= len(found.hits):
        return []
    files = "1 file" if len(found.files) == 1 else f"{len(found.files)} files"
    return [
        f"({found.total} matches in {files}, the first {len(found.hits)} are shown; be more specific to see others)"
    ]


def format_matches_with_context(found: GrepResult, wanted: str) -> str:
    """Each match under its place, ``>`` before it, the lines around with their numbers."""
    if not found.hits:
        return format_matches(found, wanted)
    matches = "1 match" if found.total == 1 else f"{found.total} matches"
    shown = f", showing the first {len(found.hits)}" if len(found.hits) < found.total else ""
    blocks = ["\n".join(_block(hit)) for hit in found.hits]
    return "\n\n".join([f"Found {matches} for {wanted!r}{shown}:", *blocks, *_notes(found.notes)])


def _block(hit: GrepMatch) -> Iterable[str]:
    yield f"{hit.path}:{hit.line}"
    yield from (f"  {number}: {line}" for number, line in enumerate(hit.before, hit.line - len(hit.before)))
    yield f"> {hit.line}: {hit.text}"
    yield from (f"  {number}: {line}" for number, line in enumerate(hit.after, hit.line + 1))


def format_command(run: CommandOutput | ProgramOutput) -> str:
    """What the command printed; a failure is said first."""
    output = "\n".join([run.output.strip("\n") or "(no output)", *_notes(run.notes)])
    if run.timed_out:
        return f"Command timed out and was stopped. Its output until then:\n{output}"
    if run.exit_code is None:
        return f"Command was stopped. Its output until then:\n{output}"
    if run.exit_code:
        return f"Command failed with exit code {run.exit_code}:\n{output}"
    return output


def program_text(run: ProgramOutput) -> str:
    """As `command_text`; of a sliced output also how to get more."""
    text = format_command(run)
    if not run.skipped_lines:
        return text
    return (
        f"{text}\n(note: {pluralize(run.skipped_lines, 'line was', 'lines were')} left out; ask for a part to see them)"
    )


def batch_text(batch: BatchResults) -> str:
    """Each call's result under its tool's name, in order; then how many succeeded."""
    sections = [f"## {result.name}\n{result.content}" for result in batch.results]
    good = sum(result.ok for result in batch.results)
    total = len(batch.results)
    sums = (
        f"All {pluralize(total, 'call')} succeeded."
        if good == total
        else f"{good} of {pluralize(total, 'call')} succeeded, {total - good} failed."
    )
    return "\n\n".join([*sections, "\n".join([sums, *_notes(batch.notes)])])


def code_text(code: CodeOutput) -> str:
    """What was printed, then ``return:`` and the value of the last expression."""
    parts = [code.output.rstrip("\n")] if code.output.strip() else []
    parts += [f"return: {code.value}"] if code.value else []
    return "\n".join([*(parts or ["(no output)"]), *_notes(code.notes)])


def answers_text(answers: UserAnswers) -> str:
    """Each question and what the user answered."""
    lines = []
    for question, chosen in zip(answers.questions, answers.chosen, strict=True):
        lines.append(f"{question.text}\n> {', '.join(chosen) or '(no answer)'}")
    return "\n".join([*lines, *_notes(answers.notes)])


_MARKS: dict[TodoStatus, str] = {"pending": " ", "in_progress": ">", "completed": "x", "cancelled": "-"}


def todos_text(todos: TodoList) -> str:
    """How far it is, then an item a line."""
    items = [
        f"[{_MARKS[todo.status]}] {todo.content}" + (f" ({todo.priority})" if todo.priority else "")
        for todo in todos.todos
    ]
    head = f"{todos.count('completed')} of {len(items)} completed." if items else "The todo list is empty."
    return "\n".join([head, *items, *_notes(todos.notes)])


def memory_text(memory: MemoryList | MemoryNote | MemoryChanged) -> str:
    """The names and sizes, the note itself, or what became of it."""
    match memory:
        case MemoryNote(text=text, path=path):
            lines = [text or f"({path} is empty)"]
        case MemoryChanged(path=path, size=None):
            lines = [f"Deleted {path} from memory."]
        case MemoryChanged(path=path, size=size):
            lines = [f"Noted {path} ({pluralize(size or 0, 'byte')})."]
        case MemoryList(entries=()):
            lines = ["Memory is empty."]
        case MemoryList(entries=entries):
            lines = [f"{name} ({pluralize(size, 'byte')})" for name, size in entries]
    return "\n".join([*lines, *_notes(memory.notes)])


def page_text(page: Page) -> str:
    """The page's text as it is."""
    return "\n".join([page.text or f"({page.url} has no text)", *_notes(page.notes)])


def search_text(found: SearchHits) -> str:
    """Title, address and content of each, best first."""
    if not found.hits:
        return "\n".join([f"Nothing was found for {found.query!r}.", *_notes(found.notes)])
    hits = (f"{number}. {hit.title}\n{hit.url}\n{hit.content}".strip() for number, hit in enumerate(found.hits, 1))
    return "\n\n".join([*hits, *_notes(found.notes)])


def deleted_text(done: OperationDone) -> str:
    text = f"Deleted {done.path}" + (f" ({done.entries} entries)." if done.entries > 1 else ".")
    return "\n".join([text, *_notes(done.notes)])


def moved_text(done: OperationDone) -> str:
    return f"Moved {done.path} to {done.destination}."


def copied_text(done: OperationDone) -> str:
    return "\n".join([f"Copied {done.path} to {done.destination}.", *_notes(done.notes)])


def format_directory_created(done: OperationDone) -> str:
    return f"Created the directory {done.path}." if done.entries else f"{done.path} exists already."


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"(note: {note})" for note in notes]
