"""Headless Chromium with a software WebGPU adapter, driven over the DevTools protocol's pipe."""

import base64
import functools
import http.server
import itertools
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading

FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--remote-debugging-pipe"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; takes reports that pages POST."""

    def __init__(self, *args, reports, **kwargs):
        self.reports = reports
        super().__init__(*args, **kwargs)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.reports.put(json.loads(body))

    def log_message(self, *args):
        pass


class Chromium:
    """A browser and a server of `root` for it: `with Chromium(path, root) as browser`."""

    def __init__(self, program, root):
        self.program, self.root = program, pathlib.Path(root)
        self.reports = queue.Queue()
        self.numbers = itertools.count(1)

    def __enter__(self):
        handler = functools.partial(Handler, reports=self.reports, directory=str(self.root))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.profile = tempfile.TemporaryDirectory(prefix="tessera-browser-",
                                                   ignore_cleanup_errors=True)
        commands_read, commands_write = os.pipe()
        answers_read, answers_write = os.pipe()

        def place():  # the browser reads commands from 3 and writes answers to 4
            high = os.dup(answers_write), os.dup(commands_read)
            os.dup2(high[1], 3)
            os.dup2(high[0], 4)

        self.process = subprocess.Popen(
            [self.program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place)
        os.close(commands_read)
        os.close(answers_write)
        self.commands, self.answers = os.fdopen(commands_write, "wb"), os.fdopen(answers_read, "rb")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.commands.close()
        self.answers.close()
        self.server.shutdown()
        self.profile.cleanup()

    def call(self, method, session=None, **parameters):
        """One command of the DevTools protocol, and its result."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        buffer = bytearray()
        while True:
            byte = self.answers.read1(1 << 16)
            if not byte:
                raise RuntimeError("the browser is gone")
            buffer += byte
            *complete, rest = buffer.split(b"\0")
            buffer = bytearray(rest)
            for answer in map(json.loads, complete):
                if answer.get("id") != number:
                    continue  # an event
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, script=""):
        """Opens a page of the server in a tab, `script` running before its own; returns the tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        tab = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable", tab)
        self.call("Page.addScriptToEvaluateOnNewDocument", tab, source=script)
        self.call("Page.navigate", tab, url=f"http://127.0.0.1:{self.server.server_address[1]}/{path}")
        return tab

    def report(self, path, timeout_s, script=""):
        """Opens a page with ?report= and returns (tab, what it POSTs there); None when it does not."""
        tab = self.open(f"{path}{'&' if '?' in path else '?'}report=/report", script)
        try:
            return tab, self.reports.get(timeout=timeout_s)
        except queue.Empty:
            return tab, None

    def screenshot(self, tab, width, dark=False, height=None, scale=1):
        """A PNG of the page, all of it where no height is given."""
        self.call("Emulation.setEmulatedMedia", tab,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        size = {"width": width, "deviceScaleFactor": scale, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", tab, height=height or 800, **size)
        if height is None:
            content = self.call("Page.getLayoutMetrics", tab)["cssContentSize"]
            self.call("Emulation.setDeviceMetricsOverride", tab, height=int(content["height"]), **size)
        return base64.b64decode(self.call("Page.captureScreenshot", tab, format="png")["data"])
