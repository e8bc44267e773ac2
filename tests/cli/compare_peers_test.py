#!/usr/bin/env python3
"""tools/compare_peers against programs that print what llama-bench prints.

usage: compare_peers_test.py TOOL"""

import json
import pathlib
import subprocess
import sys
import tempfile

FAKE = """#!/usr/bin/env python3
import json, sys
arguments = sys.argv[1:]
with open(sys.argv[0] + ".log", "a") as log:
    print(json.dumps(arguments), file=log)
tests = []
for flag, field in (("-p", "n_prompt"), ("-n", "n_gen")):
    for count in arguments[arguments.index(flag) + 1].split(","):
        test = {"n_prompt": 0, "n_gen": 0, "avg_ts": SPEED, "build_commit": "COMMIT",
                "cpu_info": "a CPU"}
        test[field] = int(count)
        tests.append(test)
print(json.dumps(tests))
"""


def main():
    tool = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, speed in (("tessera", 300), ("llama", 100), ("ik", 150)):
            path = folder / program
            path.write_text(FAKE.replace("SPEED", str(speed)).replace("COMMIT", program))
            path.chmod(0o755)
        output = folder / "out.json"
        common = [sys.executable, tool, "--tessera", folder / "tessera", "-m", "model.gguf", "-p",
                  "64,512", "-n", "16", "-t", "1,2", "--passes", "2"]
        done = subprocess.run([*common, "--llama-bench", folder / "llama", "--ik-llama-bench",
                               folder / "ik", "-o", output], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "3.00x" in done.stdout and "2.00x" in done.stdout, done.stdout
        report = json.loads(output.read_text())
        assert report["machine"] == "a CPU" and report["model"] == "model.gguf", report
        assert report["commits"] == {"tessera": "tessera", "llama.cpp": "llama",
                                     "ik_llama.cpp": "ik"}, report
        # 2 thread counts, 3 tests, 3 engines.
        assert len(report["rows"]) == 18, report
        assert all(len(row["samples_ts"]) == 2 for row in report["rows"]), report

        assert report["peer_args"] == {"llama.cpp": [], "ik_llama.cpp": []}, report

        done = subprocess.run([*common, "--llama-bench", folder / "llama",
                               "--llama-args=--repack 0", "--ik-llama-bench", folder / "ik",
                               "--ik-llama-args=-rtr '1 2'", "-o", output],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report = json.loads(output.read_text())
        assert report["peer_args"] == {"llama.cpp": ["--repack", "0"],
                                       "ik_llama.cpp": ["-rtr", "1 2"]}, report
        for program, end in (("tessera", ["-o", "json"]), ("llama", ["--repack", "0"]),
                             ("ik", ["-rtr", "1 2"])):
            last = (folder / f"{program}.log").read_text().splitlines()[-1]
            assert json.loads(last)[-2:] == end, last
        for flags, message in ((["--llama-args=--repack '0"], "No closing quotation"),
                               (["--ik-llama-args=-rtr 1"], "needs --ik-llama-bench")):
            done = subprocess.run([*common, "--llama-bench", folder / "llama", *flags],
                                  capture_output=True, text=True)
            assert done.returncode == 2 and message in done.stderr, done.stderr

        done = subprocess.run(common, capture_output=True, text=True)
        assert done.returncode == 2 and "--llama-bench" in done.stderr, done.stderr
        (folder / "llama").write_text("#!/bin/sh\necho 'cannot load' >&2\nexit 3\n")
        done = subprocess.run([*common, "--llama-bench", folder / "llama"], capture_output=True,
                              text=True)
        assert done.returncode == 1 and "llama.cpp ended with 3: cannot load" in done.stderr, done
        done = subprocess.run([*common, "--llama-bench", folder / "none"], capture_output=True,
                              text=True)
        assert done.returncode == 1 and "No such file" in done.stderr, done


if __name__ == "__main__":
    main()
