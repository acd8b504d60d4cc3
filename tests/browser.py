"""A real Chromium for the pages; tests that use it are skipped if it is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    """Return selenium's driver. ``folder``: for its profile. The console messages of pages are kept."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e '.[browser]'")
    exceptions = pytest.importorskip("selenium.common.exceptions")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except exceptions.SessionNotCreatedException as error:
        pytest.skip(f"the browser that is installed does not start: {str(error).splitlines()[0]}")
    try:
        yield chrome
    finally:
        chrome.quit()


def prefer(chrome: Any, scheme: str) -> None:
    """Set the preferred color scheme: light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
