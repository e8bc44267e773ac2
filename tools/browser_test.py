#!/usr/bin/env python3
"""Compiles and runs the WGSL files with a fixed interface in headless Chromium (its compiler is Tint, the
adapter SwiftShader) and compares them with JavaScript loops: tests/webgpu/browser/. With --page it opens
web/kernels.html instead, which measures as well, and then breaks things that the page has to survive.

Exit code: 0 when everything is right, 1 when something is not, 77 when there is no Chromium. The report
goes to stdout as JSON with --json, else as one line an entry."""

import argparse
import json
import math
import pathlib
import shutil
import sys

from chromium import Chromium

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = "tests/webgpu/browser/index.html"
PAGE = "web/kernels.html"

# What is done to the page before its own scripts run, of two files, and what must come of it.
FEW = PAGE + "?only=silu,add"
BROKEN_FILE = """{
  const load = window.fetch;
  window.fetch = (url, ...rest) => String(url).endsWith('silu.wgsl')
      ? Promise.resolve(new Response('fn main( {')) : load(url, ...rest);
}"""
WRONG_FILE = """{
  const load = window.fetch;
  window.fetch = async (url, ...rest) => new Response(
      (await (await load(url, ...rest)).text()).replace('a[i] + b[i]', 'a[i] + b[i] * 1.000001'));
}"""
LOST_DEVICE = """{
  const make = GPUDevice.prototype.createComputePipelineAsync;
  window.pipelines = 0;
  GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
    if (descriptor.compute.entryPoint === 'main_vec4' && window.pipelines++ === 0) this.destroy();
    return make.call(this, descriptor);
  };
}"""
NO_ADAPTER = "GPU.prototype.requestAdapter = async () => null;"
NO_WEBGPU = "Object.defineProperty(Navigator.prototype, 'gpu', {value: undefined});"


def faults_of_files(report):
    """One line for every entry that is not as it has to be."""
    for kernel in report["kernels"]:
        name = f"{kernel['file']}:{kernel['entry']}"
        if kernel["status"] not in ("right", "skipped"):
            yield f"{name} is {kernel['status']}: {kernel.get('message')}"
        yield from (f"{name}: {warning}" for warning in kernel.get("warnings", []))


def faults_of_page(report):
    yield from faults_of_files(report)
    for what, rate in report["probes"].items():
        if not (math.isfinite(rate) and rate > 0):
            yield f"the {what} probe gives {rate}"
    for kernel in report["kernels"]:
        name = f"{kernel['name']} {kernel['entry']}"
        if kernel["status"] == "right" and not kernel["measured"]:
            yield f"{name} was not measured"
        for problem in kernel["measured"]:
            # null is what JSON makes of NaN and infinity.
            if not all(problem[key] is not None and problem[key] > 0 for key in ("ms", "gbytes", "share")):
                yield f"{name} {problem['shape']}: {problem}"


def statuses(report):
    return [f"{kernel['name']} {kernel['entry']} {kernel['status']}" for kernel in report["kernels"]]


def faults_of_breaking(browser, timeout_s):
    """The page when a file does not compile or is wrong, the device is lost, there is no adapter, no WebGPU."""
    others = ["add main right", "add main_vec4 right"]
    for what, script, expected, said in [
            ("a file that does not compile", BROKEN_FILE,
             ["silu main failed", "silu main_vec4 failed", *others], "silu.wgsl:1:"),
            ("a file that computes something else", WRONG_FILE,
             ["silu main right", "silu main_vec4 right", "add main wrong", "add main_vec4 right"],
             "5,000: element"),
            ("a lost device", LOST_DEVICE,
             ["silu main right", "silu main_vec4 failed", *others], "device was lost"),
            ("no adapter", NO_ADAPTER, [], "found no adapter"),
            ("no WebGPU", NO_WEBGPU, [], "has no WebGPU")]:
        _, report = browser.report(FEW, timeout_s, script)
        if report is None:
            yield f"{what}: no report after {timeout_s:.0f} s"
        elif statuses(report) != expected or said not in json.dumps(report):
            yield f"{what}: expected {expected} and '{said}', got {json.dumps(report)}"


def print_report(report):
    print(f"adapter: {report.get('adapter')}, features: {report.get('features')}")
    for kernel in report["kernels"]:
        error = "-" if kernel.get("error") is None else f"{kernel['error']:.1e}"
        print(f"{kernel['status']:8} {error:>8}  {kernel['file']}:{kernel['entry']}  "
              f"{kernel.get('message') or ''}".rstrip())
        for problem in kernel["measured"]:
            print(f"{'':19}{problem['shape']}: {problem['ms']:.3g} ms, {problem['gflops']:.3g} GFLOP/s, "
                  f"{problem['gbytes']:.3g} GB/s, {100 * problem['share']:.0f} % of {problem['limit']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="of one page")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", action="store_true", help=f"{PAGE}: checks and measures")
    parser.add_argument("--screenshot", metavar="FILE", help="with --page: a PNG of it when it is done")
    parser.add_argument("--width", type=int, default=1120, help="of the screenshot")
    parser.add_argument("--height", type=int, help="of the screenshot; the whole page otherwise")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    if not options.browser:
        print("browser_test: no chromium found; install it to run this", file=sys.stderr)
        return 77
    with Chromium(options.browser, ROOT) as browser:
        tab, report = browser.report(PAGE if options.page else FILES, options.timeout)
        if report is None:
            print(f"browser_test: no report after {options.timeout:.0f} s", file=sys.stderr)
            return 1
        if options.screenshot:
            pathlib.Path(options.screenshot).write_bytes(
                browser.screenshot(tab, options.width, options.dark, options.height))
        if "error" in report:
            faults = [report["error"]]
        elif options.page:
            faults = [*faults_of_page(report), *faults_of_breaking(browser, options.timeout)]
        else:
            faults = [*faults_of_files(report)]
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print_report(report)
    for fault in faults:
        print(f"browser_test: {fault}", file=sys.stderr)
    return 1 if faults or not report["kernels"] else 0


if __name__ == "__main__":
    sys.exit(main())
