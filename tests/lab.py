"""JupyterLab on a copy of the course, controlled through headless Chromium."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tests.ports import free_port

ROOT = Path(__file__).parents[1]
CHROMIUM_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# Lab exposes its app to scripts. Cells are read from the model, because the page shows only some of them.
RUN_ALL = """async () => {
  const app = window.jupyterapp;
  await app.commands.execute('notebook:run-all-cells');
}"""
OUTPUTS = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  return panel.content.model.sharedModel.cells
    .filter(cell => cell.cell_type === 'code')
    .map(cell => ({id: cell.id, source: cell.source, count: cell.execution_count, outputs: cell.outputs}));
}"""


def chromium() -> str | None:
    """Return the path of the system's Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[str]:
    """Serve `folder` by JupyterLab on the loopback address and yield its URL with the token."""
    port = free_port()
    token = secrets.token_hex(16)
    settings = folder / ".lab"
    settings.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(settings),
        "JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter"),  # as in `make lab`
        "JUPYTER_RUNTIME_DIR": str(settings / "runtime"),
        "COURSE_PROGRESS_FILE": str(settings / "progress.json"),
        "PYTHONPATH": str(folder),  # the copy instead of an installed course
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={port}", f"--IdentityProvider.token={token}", f"--notebook-dir={folder}"]
    command += ["--expose-app-in-browser", "--ServerApp.port_retries=0"]
    with (settings / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            _wait(f"http://127.0.0.1:{port}/api", settings / "log", server)
            yield f"http://127.0.0.1:{port}/lab/workspaces/{{space}}/tree/{{path}}?token={token}"
        finally:
            server.terminate()
            server.wait(20)


def _wait(url: str, log: Path, server: subprocess.Popen):
    for _ in range(240):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(url, timeout=2).close()
            return
        if server.poll() is not None:
            break
        time.sleep(0.25)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text()[-2000:])


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 1000) -> Iterator[Page]:
    """Yield a page in headless Chromium. Without Chromium the test is skipped, or fails in CI."""
    if chromium() is None:
        (pytest.fail if os.environ.get("COURSE_CI") else pytest.skip)("no Chromium here: apt install chromium")
    with sync_playwright() as play:
        chrome = play.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        page = chrome.new_page(viewport={"width": width, "height": height})
        yield page
        chrome.close()


# Waits until animations have ended, because half-faded letters have too little contrast.
REST = """Promise.all(document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity)
  .map((one) => one.finished.catch(() => 0)))"""


def faults(page: Page) -> list[str]:
    """Return a line for each violation of WCAG 2.1 AA that axe-core finds on the open page."""
    page.evaluate(REST)
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
    return [
        f"{found['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for found in Axe().run(page, options=rules).response["violations"]
        for node in found["nodes"]
    ]


def faults_by_day_and_night(page: Page) -> list[str]:
    """Return the violations in light and in dark colors."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found += faults(page)
    return found


@contextlib.contextmanager
def course_in_lab(folder: Path, trained: Path | None = None) -> Iterator[tuple[str, Page]]:
    """Yield (address of JupyterLab on a copy of the course in `folder`, a page).

    trained: the folder of executed notebooks, whose trained weights are copied beside the solutions.
    """
    for part in ("notebooks", "helpers", "solutions"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "course.toml", folder)
    for kept in trained.glob("*.kept") if trained else ():
        shutil.copytree(kept, folder / "solutions" / kept.stem, dirs_exist_ok=True)
    with lab(folder) as url, browser(width=1400) as page:
        yield url, page


def open_notebook(page: Page, url: str, path: str) -> None:
    """Open a notebook and wait until its kernel is idle."""
    # In a new workspace, because Lab would reopen the notebooks of the last one.
    page.goto(url.format(path=path, space=secrets.token_hex(4)))
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=60_000,
    )


def run_all(page: Page, timeout: float = 300) -> list[dict]:
    """Run every cell, wait until the kernel is idle, and return the code cells with their outputs."""
    page.evaluate(RUN_ALL)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        cells = page.evaluate(OUTPUTS)
        busy = page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status")
        if busy == "idle" and all(cell["count"] or not cell["source"].strip() for cell in cells):
            return cells
        time.sleep(0.3)
    raise TimeoutError(f"the notebook was still running after {timeout} s")


def errors(cells: list[dict]) -> list[tuple[str, str, str]]:
    """Return (start of the cell, error class, message) for each error."""
    return [
        (cell["source"][:60], output["ename"], output["evalue"])
        for cell in cells
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]


def choose_theme(page: Page, theme: str) -> None:
    """Switch to a theme such as "JupyterLab Dark"."""
    page.evaluate("t => window.jupyterapp.commands.execute('apputils:change-theme', {theme: t})", theme)
    page.wait_for_timeout(800)


def cell(page: Page, cell_id: str, shows: str = "img, .noUi-handle, .ui-slider-handle"):
    """Scroll the cell with this id into view, wait until it contains the selector `shows`, and return it."""
    index = page.evaluate(
        "id => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(w => w.model.sharedModel.id === id)",
        cell_id,
    )
    page.evaluate("i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i, 'center')", index)
    found = page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
    found.locator(shows).first.wait_for(timeout=20_000)
    found.scroll_into_view_if_needed()
    page.wait_for_timeout(1000)
    return found


def wait_until(true, seconds: float) -> bool:
    """Return whether true() returns True within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return False
