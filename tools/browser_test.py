#!/usr/bin/env python3
"""Compiles and runs the WGSL files with a fixed interface in headless Chromium (its compiler is Tint, the
adapter SwiftShader) and compares them with JavaScript loops: tests/webgpu/browser/.

Exit code: 0 when everything is right, 1 when something is not, 77 when there is no Chromium. The report
goes to stdout as JSON with --json, else as one line a kernel."""

import argparse
import functools
import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "tests/webgpu/browser/index.html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the tree; takes the page's report."""

    def __init__(self, *args, reports, **kwargs):
        self.reports = reports
        super().__init__(*args, directory=str(ROOT), **kwargs)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.reports.put(json.loads(body))

    def log_message(self, *args):
        pass


def run_browser(browser, timeout_s):
    """The page's report, or None when it did not come in time."""
    reports = queue.Queue()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             functools.partial(Handler, reports=reports))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="tessera-browser-") as profile:
        process = subprocess.Popen(
            [browser, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
             "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
             f"--user-data-dir={profile}",
             f"http://127.0.0.1:{server.server_address[1]}/{PAGE}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return reports.get(timeout=timeout_s)
        except queue.Empty:
            return None
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
            shutil.rmtree(profile, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.browser:
        print("browser_test: no chromium found; install it to run this", file=sys.stderr)
        return 77
    report = run_browser(options.browser, options.timeout)
    if report is None:
        print(f"browser_test: no report after {options.timeout:.0f} s", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print(f"adapter: {report.get('adapter')}, features: {report.get('features')}")
        for kernel in report["kernels"]:
            error = kernel.get("error")
            figure = "-" if error is None else f"{error:.1e}"
            print(f"{'ok  ' if kernel['ok'] else 'FAIL'} {figure:>8}  {kernel['kernel']}  "
                  f"{kernel.get('message', '')}".rstrip())
    if "error" in report:
        print(f"browser_test: {report['error']}", file=sys.stderr)
    return 0 if report["kernels"] and all(kernel["ok"] for kernel in report["kernels"]) else 1


if __name__ == "__main__":
    sys.exit(main())
