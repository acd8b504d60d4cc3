"""Format tool results as text for the model, with functions that all dialects share.

Lines are short and begin with the path. Hints are added where a model needs them. A result's notes follow its text as
``(note: ...)`` lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from adapter.core.text.lines import split_lines, strip_line_end
from adapter.core.text.plurals import pluralize
from adapter.tools import operations as ops
from adapter.tools.operations import TodoStatus


def format_file(file: ops.FileText) -> str:
    """Return the file's text, or a note if it is empty, because models mistake an empty result for a failure."""
    return file.text or f"({file.path} is empty)"


def _number_lines(file: ops.FileText) -> list[str]:
    return [f"{number}: {strip_line_end(line)}" for number, line in enumerate(split_lines(file.text), file.start_line)]


def format_numbered_lines(file: ops.FileText) -> str:
    """Return numbered lines below a header with their range and the total number of lines."""
    if file.total_lines == 0:
        return format_file(file)
    total = "a large file" if file.total_lines is None else file.total_lines
    head = f"File: {file.path}\nLines {file.start_line}-{file.end_line} (of {total}):"
    return "\n".join([head, *_number_lines(file)])


def take_page(file: ops.FileText, max_bytes: int) -> tuple[ops.FileText, bool]:
    """Return the lines (at least one) that fit into ``max_bytes`` when numbered, and whether more follow."""
    lines = split_lines(file.text)
    size = 0
    for count, (number, line) in enumerate(enumerate(lines, file.start_line)):
        size += len(f"{number}: {line}\n".encode())
        if size > max_bytes and count:
            end = file.start_line + count - 1
            return replace(file, text="".join(lines[:count]), end_line=end, truncated=True), True
    return file, file.truncated


def format_numbered_page(file: ops.FileText, max_bytes: int, read_on: Callable[[int], str]) -> str:
    """Return the numbered lines that fit into ``max_bytes``, and a hint below them if more lines follow. ``read_on``
    builds the hint from the next line's number."""
    if not file.text:
        return format_file(file)
    page, has_more = take_page(file, max_bytes)
    hint = [f"(lines {_format_range(page)}; {read_on(page.end_line + 1)})"] if has_more else []
    return _join(*_number_lines(page), *hint, notes=file.notes)


def format_plain_page(file: ops.FileText, max_bytes: int, read_on: Callable[[int], str]) -> str:
    """Return the text that fits into ``max_bytes``, and a hint above it if more lines follow. ``read_on`` builds the
    hint from the next line's number."""
    page, has_more = take_page(file, max_bytes)
    head = [f"Showing lines {_format_range(page)} ({read_on(page.end_line + 1)}).", "---"] if has_more else []
    return "\n".join([*_format_notes(file.notes), *head, format_file(page)])


def _format_range(file: ops.FileText) -> str:
    total = "a large file" if file.total_lines is None else f"{file.total_lines}"
    return f"{file.start_line}-{file.end_line} of {total}"


def format_written(written: ops.FileWritten) -> str:
    verb = "Created" if written.created else "Overwrote"
    return f"{verb} {written.path} ({pluralize(written.size, 'byte')})."


def format_patched(patched: ops.FilePatched | ops.FilesPatched) -> str:
    """Summarize the edits. If an old text differed from the file, include the notes and the diff."""
    if isinstance(patched, ops.FilePatched):
        text = f"Applied {pluralize(patched.count, 'patch', 'patches')} to {patched.path}."
    else:
        text = ", ".join(patched.done)
        text = f"{text[:1].upper()}{text[1:]}."
    return "\n".join([_join(text, notes=patched.notes), "Check the change:", patched.diff]) if patched.notes else text


def format_tree(listing: ops.Listing) -> str:
    """Format an indented tree, two spaces per level, with ``/`` after directories."""
    head = f"{listing.path}/"
    lines = [
        "  " * entry.depth + entry.path.rpartition("/")[2] + ("/" if entry.is_directory else "")
        for entry in listing.entries
    ]
    if not lines:
        return f"{head} (empty)"
    if listing.omitted:
        lines.append(f"(showing {len(lines)} entries, {listing.omitted} more; list a subdirectory to see them)")
    return _join(head, *lines, notes=listing.notes)


def format_listing(
    listing: ops.Listing, offset: int = 1, limit: int | None = None, read_on: Callable[[int], str] | None = None
) -> str:
    """Format one entry per line, with ``/`` after directories. Size and time come first if known.

    ``offset`` and ``limit`` select a page of entries. ``read_on`` builds the hint from the next entry's number. Without
    it, the hint suggests a narrower listing.
    """
    head = f"{listing.path}/"
    total = len(listing.entries) + listing.omitted
    if not total:
        return _join(f"{head} (empty)", notes=listing.notes)
    page = listing.entries[offset - 1 :][:limit]
    lines = [_format_details(entry) + entry.path + ("/" if entry.is_directory else "") for entry in page]
    rest = []
    if len(page) < total:
        end = offset + len(page) - 1
        can_read_on = read_on and end < len(listing.entries)
        hint = read_on(end + 1) if read_on and can_read_on else "narrow it: list a subdirectory, or use a pattern"
        rest = [f"(entries {offset}-{end} of {total}" + (f"; {hint})" if end < total else ")")]
    return _join(head, *lines, *rest, notes=listing.notes)


def _format_details(entry: ops.ListingEntry) -> str:
    if entry.size is None:
        return ""
    return f"{'-' if entry.is_directory else entry.size:>10} {entry.modified} "


def format_paths(found: ops.PathList, pattern: str) -> str:
    """Format one path per line."""
    if not found.paths:
        return _join(f"No files match {pattern!r}.", notes=found.notes)
    more = [f"(only the first {len(found.paths)} are shown; be more specific)"] if found.truncated else []
    return _join(*found.paths, *more, notes=found.notes)


def format_matches(found: ops.GrepResult, pattern: str) -> str:
    """Format one match per line, as ``filepath:line_number:line_content``."""
    lines = [f"{hit.path}:{hit.line}:{hit.text}" for hit in found.hits] or [f"No matches for {pattern!r}."]
    return _join(*lines, notes=found.notes)


def format_grouped_matches(found: ops.GrepResult, pattern: str) -> str:
    """Group matches by file: the path, then each match as `` N: text``."""
    if not found.hits:
        return format_matches(found, pattern)
    groups = [
        "\n".join([f"{path}:", *(f"  {hit.line}: {hit.text}" for hit in hits)])
        for path, hits in groupby(found.hits, lambda hit: hit.path)
    ]
    return _join(*groups, *format_omitted_matches(found), notes=found.notes)


def format_omitted_matches(found: ops.GrepResult) -> list[str]:
    """Return a line with the number of matches beyond the limit, in a list, or []."""
    shown, files = len(found.hits), pluralize(len(found.files), "file")
    if found.total <= shown:
        return []
    return [f"({found.total} matches in {files}, the first {shown} are shown; be more specific to see others)"]


def format_matches_with_context(found: ops.GrepResult, pattern: str) -> str:
    """Mark each match with ``>``, and show the numbered lines around it."""
    if not found.hits:
        return format_matches(found, pattern)
    shown = f", showing the first {len(found.hits)}" if len(found.hits) < found.total else ""
    head = f"Found {pluralize(found.total, 'match', 'matches')} for {pattern!r}{shown}:"
    blocks = ["\n".join(_format_block(hit)) for hit in found.hits]
    return "\n\n".join([head, *blocks, *_format_notes(found.notes)])


def _format_block(hit: ops.GrepMatch) -> Iterable[str]:
    yield f"{hit.path}:{hit.line}"
    yield from (f"  {number}: {line}" for number, line in enumerate(hit.before, hit.line - len(hit.before)))
    yield f"> {hit.line}: {hit.text}"
    yield from (f"  {number}: {line}" for number, line in enumerate(hit.after, hit.line + 1))


def format_command(run: ops.CommandOutput | ops.ProgramOutput) -> str:
    """Return a command's output, below a line about the failure if it failed."""
    output = _join(run.output.strip("\n") or "(no output)", notes=run.notes)
    if run.timed_out or run.exit_code is None:
        return f"Command {'timed out and ' if run.timed_out else ''}was stopped. Its output so far:\n{output}"
    return f"Command failed with exit code {run.exit_code}:\n{output}" if run.exit_code else output


def format_program(run: ops.ProgramOutput) -> str:
    """Format a result like `format_command`, with a note if lines of the output were omitted."""
    text = format_command(run)
    if not run.skipped_lines:
        return text
    lines = pluralize(run.skipped_lines, "line was", "lines were")
    return f"{text}\n(note: {lines} omitted; request a part to see them)"


def format_batch(batch: ops.BatchResults) -> str:
    """Format each result under its tool's name, in order, and then the number of successful calls."""
    sections = [f"## {result.name}\n{result.content}" for result in batch.results]
    total, failed = len(batch.results), sum(not result.ok for result in batch.results)
    calls = pluralize(total, "call")
    summary = f"{total - failed} of {calls} succeeded, {failed} failed." if failed else f"All {calls} succeeded."
    return "\n\n".join([*sections, _join(summary, notes=batch.notes)])


def format_code(code: ops.CodeOutput) -> str:
    """Return the printed output, then ``return:`` and the value of the last expression."""
    parts = [code.output.rstrip("\n")] if code.output.strip() else []
    parts += [f"return: {code.value}"] if code.value else []
    return _join(*(parts or ["(no output)"]), notes=code.notes)


def format_answers(answers: ops.UserAnswers) -> str:
    """Format each question with the user's answer."""
    pairs = zip(answers.questions, answers.chosen, strict=True)
    lines = (f"{question.text}\n> {', '.join(chosen) or '(no answer)'}" for question, chosen in pairs)
    return _join(*lines, notes=answers.notes)


TODO_MARKS: dict[TodoStatus, str] = {"pending": " ", "in_progress": ">", "completed": "x", "cancelled": "-"}


def format_todos(todos: ops.TodoList) -> str:
    """Format the number of completed items, and below it one item per line."""
    items = [
        f"[{TODO_MARKS[todo.status]}] {todo.content}" + (f" ({todo.priority})" if todo.priority else "")
        for todo in todos.todos
    ]
    head = f"{todos.count('completed')} of {len(items)} completed." if items else "The todo list is empty."
    return _join(head, *items, notes=todos.notes)


def format_memory(memory: ops.MemoryList | ops.MemoryNote | ops.MemoryChanged) -> str:
    """Format a list of notes with their sizes, a single note, or a change."""
    match memory:
        case ops.MemoryNote(text=text, path=path):
            lines = [text or f"({path} is empty)"]
        case ops.MemoryChanged(path=path, size=None):
            lines = [f"Deleted {path} from memory."]
        case ops.MemoryChanged(path=path, size=size):
            lines = [f"Saved {path} to memory ({pluralize(size or 0, 'byte')})."]
        case ops.MemoryList(entries=()):
            lines = ["Memory is empty."]
        case ops.MemoryList(entries=entries):
            lines = [f"{name} ({pluralize(size, 'byte')})" for name, size in entries]
    return _join(*lines, notes=memory.notes)


def format_page(page: ops.Page) -> str:
    return _join(page.text or f"({page.url} has no text)", notes=page.notes)


def format_search(found: ops.SearchHits) -> str:
    """Format each result's title, URL and content, best first."""
    if not found.hits:
        return _join(f"No results for {found.query!r}.", notes=found.notes)
    hits = (f"{number}. {hit.title}\n{hit.url}\n{hit.content}".strip() for number, hit in enumerate(found.hits, 1))
    return "\n\n".join([*hits, *_format_notes(found.notes)])


def format_deleted(done: ops.OperationDone) -> str:
    entries = f" ({done.entries} entries)" if done.entries > 1 else ""
    return _join(f"Deleted {done.path}{entries}.", notes=done.notes)


def format_moved(done: ops.OperationDone) -> str:
    return f"Moved {done.path} to {done.destination}."


def format_copied(done: ops.OperationDone) -> str:
    return _join(f"Copied {done.path} to {done.destination}.", notes=done.notes)


def format_directory_created(done: ops.OperationDone) -> str:
    return f"Created the directory {done.path}." if done.entries else f"{done.path} already exists."


_FORMATTERS: dict[type, Callable[[Any], str]] = {
    ops.ReadText: format_file, ops.Tree: format_tree, ops.WriteText: format_written, ops.Delete: format_deleted,
    ops.Move: format_moved, ops.Copy: format_copied, ops.MakeDirectory: format_directory_created,
    ops.FetchPage: format_page, ops.RunCode: format_code,
    **dict.fromkeys((ops.PatchText, ops.PatchFiles, ops.ReplaceSelection, ops.InsertAtCursor), format_patched),
}  # fmt: skip
"""Each operation's usual formatter for its outcome. For other operations, each dialect has its own."""


def format_outcome(operation: ops.Operation, outcome: Any) -> str:
    """Return the usual text for an operation's outcome. Raises NotImplementedError if there is none."""
    match operation:
        case ops.Glob(pattern=pattern) | ops.FindByName(text=pattern):
            return format_paths(outcome, pattern)
        case ops.Grep(pattern=pattern):
            return format_matches(outcome, pattern)
        case _ if type(operation) in _FORMATTERS:
            return _FORMATTERS[type(operation)](outcome)
    raise NotImplementedError(f"a tool that performs {type(operation).__name__} must define render()")


def _format_notes(notes: Sequence[str]) -> list[str]:
    return [f"(note: {note})" for note in notes]


def _join(*lines: str, notes: Sequence[str]) -> str:
    return "\n".join([*lines, *_format_notes(notes)])
