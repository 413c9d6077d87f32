"""Chromium without a window, spoken to by its remote debugging pipe: nothing but Python's own library is needed.

usage: browser.py PAGE FOLDER [WIDTH...]     screenshots of PAGE, light and dark, into FOLDER, and the times of its paints
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page of one browser. What the page says on its console, and what it asks for, is kept."""

    def __init__(self, program, timeout_s=60):
        self.deadline_s = timeout_s
        self.profile = tempfile.mkdtemp(prefix="assay-browser-")
        to_browser, self.to = os.pipe()
        self.answers, from_browser = os.pipe()
        arguments = [program, "--headless", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--disable-gpu",
                     "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")

        # The browser expects the pipe at 3 and 4: from numbers that cannot stand in the way of these.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (to_browser, from_browser)]
        self.process = subprocess.Popen(arguments + ["about:blank"], pass_fds=(3, 4), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=lambda: [os.dup2(end, 3 + i) for i, end in enumerate(ends)])
        for fd in ends:
            os.close(fd)
        os.close(to_browser)
        os.close(from_browser)
        self.left, self.number, self.events = b"", 0, []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        end = time.monotonic() + self.deadline_s
        while b"\0" not in self.left:
            if time.monotonic() > end:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise EOFError("the browser has ended")
            self.left += got
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, page):
        self.events.clear()
        self.call("Page.navigate", url=Path(page).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())
        end = time.monotonic() + self.deadline_s
        while not self.value("Boolean(document.documentElement.dataset.isWhole)") and time.monotonic() < end:
            time.sleep(0.01)
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def size(self, width, height=900, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def complaints(self):
        """What the page has said that it should not: errors of scripts, of the policy, of the console."""
        said = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                said.append(details.get("exception", {}).get("description", details["text"]))
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                said.append(parameters["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                said.append(str(parameters["args"]))
        return said

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, file):
        height = self.value("Math.ceil(document.documentElement.getBoundingClientRect().height)")
        width = self.value("innerWidth")
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        Path(file).write_bytes(base64.b64decode(shot["data"]))


def main(page, folder, widths):
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Browser(find_browser()) as browser:
        for width in widths:
            browser.size(width, phone=width < 600)
            for scheme in ("light", "dark"):
                browser.colours(scheme)
                browser.open(page)
                paints = browser.value("performance.getEntriesByType('paint').map((p) => [p.name, Math.round(p.startTime)])")
                wide = browser.value("document.documentElement.scrollWidth")
                browser.screenshot(Path(folder) / f"{Path(page).stem}-{width}-{scheme}.png")
                print(f"{width} {scheme}: {paints}, {wide} wide, complaints {browser.complaints()}, requests {len(browser.requests())}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], [int(width) for width in sys.argv[3:]] or [400, 1200, 2000])
