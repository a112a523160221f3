"""A headless Chromium that a test can look through, over its debugging pipe: no driver, no extra package.

Source: chromedevtools.github.io/devtools-protocol; --remote-debugging-pipe reads JSON messages from
descriptor 3 and writes them to descriptor 4, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One open page.

    Attributes:
        problems: Console errors and exceptions so far.
        requests: URLs that the page asked for so far, its own file and inlined data left out.
    """

    def __init__(self, read: int, write: int) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._read, self._write = read, write
        self._buffer = b""
        self._n_sent = 0
        self._session: str | None = None

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        self._n_sent += 1
        message: dict[str, Any] = {"id": self._n_sent, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._n_sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, file: Path | str, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        """Load a file, or what is at an address, and wait until it has loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.set_dark(dark)
        self.send("Page.navigate", url=file if isinstance(file, str) else file.as_uri())
        self.wait_for("document.readyState === 'complete'")

    def set_dark(self, dark: bool) -> None:
        """Prefer the dark or the light colour scheme."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression gives."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def wait_for(self, script: str, seconds: float = 20) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not true after {seconds:g} s: {script}")
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Move the mouse to the middle of an element and press."""
        script = f"""(() => {{ const element = document.querySelector({selector!r});
            element.scrollIntoView({{block: 'center'}}); const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        x, y = self.run(script)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(parameters["exceptionDetails"]["text"])
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.problems.append(parameters["entry"]["text"])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "assert"):
                self.problems.append(str(parameters["args"]))
            case "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:")):
                    self.requests.append(url)
        return message


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """Start a browser, give a page of it, and end it."""
    assert CHROMIUM is not None
    to_browser, to_browser_write = os.pipe()
    from_browser_read, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ]
        # The browser wants its ends as descriptors 3 and 4; a shell can put them there.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["bash", "-c", command, CHROMIUM, *options, "--remote-debugging-pipe"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(from_browser_read, to_browser_write)
        finally:
            process.terminate()
            process.wait(timeout=20)
            os.close(to_browser_write)
            os.close(from_browser_read)
