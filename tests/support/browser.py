"""A real headless Chromium for tests, driven by Selenium, which fetches nothing from anywhere."""

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
#: How long a page may take to show what is waited for, on a machine that does other things as well.
SECONDS = 120


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """A browser with a fresh profile. Skips the test where Chromium or its driver is not
    installed."""
    driver, binary = (
        shutil.which("chromedriver"),
        shutil.which("chromium") or shutil.which("google-chrome"),
    )
    if driver is None or binary is None:
        pytest.skip(
            "no chromium and chromedriver on PATH: the dashboard is not looked at in a browser"
        )
    with tempfile.TemporaryDirectory(prefix="mirrorlake-chromium-") as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browser = webdriver.Chrome(options, Service(driver))
        browser.set_page_load_timeout(SECONDS)
        try:
            yield browser
        finally:
            browser.quit()


def resize(browser: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Give the page a width in CSS pixels, as a phone's screen does, which windows cannot have."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def prefer(browser: webdriver.Chrome, scheme: str) -> None:
    """Say that the system prefers light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait_for(
    browser: webdriver.Chrome, what: str, condition: Callable[[webdriver.Chrome], Any]
) -> Any:
    """Wait until a condition holds; `what` is said when it does not."""
    return WebDriverWait(browser, SECONDS, poll_frequency=0.1).until(
        condition, f"waited in vain for: {what}"
    )


def console_errors(browser: webdriver.Chrome) -> list[str]:
    """What the page complained of since the last call: errors and warnings."""
    return [
        str(entry["message"])
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def screenshot(browser: webdriver.Chrome, path: Path, scale: float = 1) -> None:
    """Write a PNG of the page in whole, smaller by `scale`."""
    size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": scale}
    options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    path.write_bytes(
        base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    )
