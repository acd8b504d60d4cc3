"""Hooks for mkdocs: add the pages at the top of the repository to the site, and convert their links.

Links are written as they work in the repository. On the site, links to other files (code, tests) become plain text.
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent.parent))
from docs.playground_site import site_files

log = logging.getLogger("mkdocs.hooks")

ROOT = Path(__file__).parent.parent
ON_SITE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages outside docs/, with their names on the site."""
IN_REPOSITORY = {name: source for source, name in ON_SITE.items()}

_CODE_OR_LINK = re.compile(
    r"(?P<code>^(?P<fence>```|~~~).*?^(?P=fence)$)|(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<target>[^)#\s]+)"
    r"(?P<anchor>#[^)\s]+)?\)",
    re.DOTALL | re.MULTILINE,
)


@cache
def playground_files() -> dict[str, bytes]:
    """Return the files of the playground; empty if npm cannot fetch its runtime."""
    try:
        return site_files()
    except RuntimeError as error:
        log.info("The site has no playground: %s", error)
        return {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    if playground_files() and config.nav is not None:
        config.nav.insert(2, {"Playground": "playground/index.html"})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for name, content in playground_files().items():
        files.append(File.generated(config, f"playground/{name}", content=content))
    for source, name in ON_SITE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    here = page.file.src_uri
    folder = posixpath.dirname(IN_REPOSITORY.get(here, f"docs/{here}"))

    def convert(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, match["target"]))
        name = ON_SITE.get(target, target.removeprefix("docs/"))
        if name == target or files.get_file_from_path(name) is None:
            return match["text"]
        place = posixpath.relpath(name, posixpath.dirname(here) or ".")
        return f"{match['mark']}[{match['text']}]({place}{match['anchor'] or ''})"

    return _CODE_OR_LINK.sub(convert, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Make code blocks scrollable with the keyboard, and replace the two colons that introduce code in docstrings."""
    return re.sub(r"(<pre[^>]*>(?:<span></span>)?)<code>", r'\1<code tabindex="0">', html).replace("::</p>", ":</p>")
