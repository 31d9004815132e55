"""Holds the processor's rules against ONNX Runtime: every node test of the onnx package is analysed and loaded.

    cargo build --release --example inspect
    python3 run_on_processor.py ../../../../target/release/examples/inspect

Prints how many models of each verdict load, and every model that is called supported or partial and does not load, or is called
unsupported and does. Needs the Python packages onnx and onnxruntime.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnxruntime
from onnx.backend.test.case.node import collect_testcases


def loads(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return ""
    except Exception as error:
        return str(error).splitlines()[0][:160]


def verdict(inspect, path):
    said = subprocess.run([inspect, "analyze", "--json", "--target", "CPU/CPU", path], capture_output=True, text=True)
    result = json.loads(said.stdout)["components"][0]["results"][0]
    coverage = result["coverage"]
    worst = next((v for v in ("unsupported", "unknown", "partial") if coverage[v]), "supported")
    return worst, "; ".join(i["reason"] for i in result["information"][:1])


def main(inspect):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for case in collect_testcases(None):
            onnx.save(case.model, path)
            error = loads(path)
            worst, reason = verdict(inspect, path)
            counts[worst, "refused" if error else "loads"] += 1
            if worst != "unknown" and (worst == "unsupported") == (error == ""):
                print(f"{case.name}: {worst} ({reason}), {error or 'loads'}")
    for (worst, outcome), count in sorted(counts.items()):
        print(f"{worst:12} {outcome:8} {count}")


main(sys.argv[1])
