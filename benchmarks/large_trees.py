"""Exact answers on chains and random trees of up to a million binary variables: CPU seconds and peak memory.

`python benchmarks/large_trees.py [variables] [memory in bytes]`. Each question is asked in a process of its own, with
the network built there: `built` is what the network takes, `above` the peak beyond it while the question is answered,
planning included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

KINDS = ("chain", "tree")
QUESTIONS = ("one", "all", "log_evidence", "map_query", "sample", "batch")


def build(kind: str, n: int) -> Any:
    """A network of n binary variables with random tables: each hangs on the one before, or on any before."""
    import numpy as np

    import gramgraph as gg
    from gramgraph.variables import binary

    rng = np.random.default_rng(0)
    parent = np.arange(-1, n - 1) if kind == "chain" else (rng.random(n) * np.arange(n)).astype(int)
    p = rng.uniform(0.1, 0.9, (n, 2))
    tables = np.stack([p, 1.0 - p], axis=-1)
    nodes = [binary(f"x{i}") for i in range(n)]
    first = gg.Table(nodes[0], (), tables[0, 0])
    rest = [gg.Table(nodes[i], (nodes[parent[i]],), tables[i]) for i in range(1, n)]
    return gg.BayesianNetwork.from_parts(nodes, [first, *rest])


def ask(net: Any, question: str, memory: float | None) -> None:
    """One question with evidence at both ends and in between."""
    n = len(net)
    seen = {"x0": "yes", f"x{n // 3}": "no", f"x{n - 1}": "yes"}
    if question == "one":
        net.query(f"x{n // 2}", seen, memory=memory)
    elif question == "all":
        net.query(None, seen, memory=memory)
    elif question == "log_evidence":
        net.log_evidence(seen, memory=memory)
    elif question == "map_query":
        net.map_query(seen, memory=memory)
    elif question == "sample":
        net.sample(3, seen, random_state=0, memory=memory)
    else:
        net.query(f"x{n // 2}", [seen, {"x1": "no"}, {"x0": "no", f"x{n - 2}": "yes"}], memory=memory)


def resident() -> float:
    """Bytes of memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as line:
        return float(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> float:
    """The largest resident set since it was reset."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def run_one(kind: str, n: int, question: str, memory: float | None) -> dict[str, Any]:
    """Build and ask in this process; the figures of both, in megabytes and CPU seconds."""
    from gramgraph.exceptions import BudgetError

    ask(build(kind, 2000), question, None)  # what has to be compiled is compiled (or loaded) here
    begun = time.process_time()
    net = build(kind, n)
    built, building, seconds = resident(), peak(), time.process_time() - begun
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    refused = ""
    try:
        ask(net, question, memory)
    except BudgetError as error:
        refused = str(error).splitlines()[0]
    return {
        "build_cpu": seconds,
        "cpu": time.process_time() - begun,
        "built": built / 1e6,
        "above": (peak() - built) / 1e6,
        "peak": max(building, peak()) / 1e6,  # `ru_maxrss` would count the process that started this one
        "refused": refused,
    }


def measured(kind: str, n: int, question: str, memory: float | None) -> dict[str, Any]:
    """The figures of `run_one` in a process of its own."""
    call = [sys.executable, __file__, "--one", kind, str(n), question, "" if memory is None else str(memory)]
    out = subprocess.run(call, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(out.stdout.splitlines()[-1])
    return found


def main(arguments: list[str]) -> None:
    """A line for each kind of network and question."""
    if arguments[:1] == ["--one"]:
        kind, n, question, memory = arguments[1:]
        print(json.dumps(run_one(kind, int(n), question, float(memory) if memory else None)))
        return
    n = int(float(arguments[0])) if arguments else 1_000_000
    limit = float(arguments[1]) if len(arguments) > 1 else None
    print(f"{n:,} variables, memory={limit}")
    for kind in KINDS:
        for question in QUESTIONS:
            f = measured(kind, n, question, limit)
            print(
                f"{kind:6} {question:13} CPU {f['cpu']:6.1f} s (building {f['build_cpu']:5.1f})   "
                f"built {f['built']:6.0f} MB   above {f['above']:6.0f} MB   process {f['peak']:6.0f} MB   "
                f"{f['refused']}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
