"""The site is built without a warning, and loads nothing from elsewhere. Only with `pytest -m clients`."""

from __future__ import annotations

import re
import shutil
from itertools import product
from pathlib import Path

import pytest

from tests.browser import chromium, prefer
from tests.clients.test_accessibility import AXE, faults

pytestmark = pytest.mark.clients
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    pytest.importorskip("material", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings_handlers.python", reason="needs the extra docs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder


@pytest.fixture(scope="module")
def site(folder) -> dict[str, str]:
    """Return its pages by path."""
    return {page.relative_to(folder).as_posix(): page.read_text(encoding="utf-8") for page in folder.rglob("*.html")}


def test_every_page_is_built(site):
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert pages | {"index.html", "contributing.html", "security.html", "changelog.html"} <= site.keys()


def test_playground_is_linked(site):
    """It is there if npm could fetch its runtime."""
    assert 'href="playground/index.html"' in site["index.html"]
    assert "playground/index.html" in site or not shutil.which("npm")


def test_nothing_is_loaded_from_elsewhere(site):
    """No fonts, scripts, styles or pictures. Links are allowed."""
    for name, html in site.items():
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="([^"]+)"|<link[^>]*\bhref="([^"]+)"', html)
        assert [each for pair in loaded for each in pair if re.match(r"(?:https?:)?//", each)] == [], name


def test_public_names_have_their_signatures(site):
    """With the first sentence of the docstring."""
    text = re.sub(r"<[^>]+>", "", site["api.html"])
    assert "Apply all patches to" in text
    assert re.search(r"constraint:\s+Constraint\s+\|\s+None\s+=\s+None", text)
    assert re.search(r"ToolCall\(\s*id:\s+str,\s+name:\s+str,\s+arguments:\s+JsonObject,\s+raw:\s+str,\s+fixes:", text)
    assert re.search(r"Tool\(\s*name:\s+str,", text)
    assert "_resolved" not in text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["index", "agent", "api", "commands", "performance", "serve"])
def test_page_is_accessible_and_follows_the_system_colors(folder, page, tmp_path):
    """Light and dark, wide and narrow: axe finds no fault, such as tables without heads or weak contrast."""
    try:
        AXE.install()
    except RuntimeError as error:
        pytest.skip(f"axe-core cannot be had: {str(error)[-200:]}")
    axe = (AXE.folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    with chromium(tmp_path) as chrome:
        for (scheme, name), width in product((("light", "default"), ("dark", "slate")), (1280, 390)):
            prefer(chrome, scheme)
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            chrome.get((folder / f"{page}.html").as_uri())
            assert chrome.execute_script("return document.body.dataset.mdColorScheme") == name
            assert faults(chrome, axe) == []
