"""The first answer on a new machine: CPU seconds from the start of the interpreter, with an empty cache.

`python -m benchmarks cold_start`. Every task is a small program that runs in a process of its own, on one thread: with
an empty folder for compiled code (first), and with what `gramgraph warmup` has left (second), by turns, three times
each. The seconds are those of the process and of its children, as the kernel counts them, imports included, of the best
run; the number of compilations is that of the files which a first process left. Peers run the same task as often.
Bytecode is there for all, as pip leaves it. The first row is what importing NumPy and scikit-learn costs alone: on a
busy machine all rows grow with it.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import THREAD_VARIABLES, Cell, Failure, Measurement, Runner, installed, versions
from benchmarks.networks import network_paths

__all__ = ["report"]

_PEERS = ("pyagrum", "pgmpy", "hmmlearn", "sklearn")
_BLOBS = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2)); t = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200); y = t > 0
"""
_SERIES = """
import numpy as np
rng = np.random.default_rng(0)
z = np.repeat(rng.integers(0, 3, 50), 10); x = (3.0 * z + rng.normal(size=500))[:, None]
"""
_MIXED = """
import gramgraph as gg
body = gg.BayesianNetwork("sex{f|m} -> height{real} -> weight{real}", cpds={"sex": [0.5, 0.5],
    "height": {"f": {"intercept": 165, "sd": 7}, "m": {"intercept": 178, "sd": 8}},
    "weight": {"intercept": -60, "coefficients": {"height": 0.75}, "sd": 8}})
body.query(["sex", "height"], evidence={"weight": 80})
"""
_LINES = """
import gramgraph as gg
net = gg.BayesianNetwork("a{real} -> b{real} -> c{real}", cpds={"a": {"intercept": 1, "sd": 1},
    "b": {"intercept": 0, "coefficients": {"a": 2}, "sd": 1}, "c": {"intercept": 0, "coefficients": {"b": 1}, "sd": 1}})
net.query("a", {"c": 1.0})
"""
_CRF = """
import random
import gramgraph as gg
random.seed(0)
words = {"D": ["the", "a"], "N": ["cat", "dog", "mat"], "V": ["sat", "ran"]}
y = [[random.choice("DNV") for _ in range(8)] for _ in range(50)]
X = [[{"word": random.choice(words[k])} for k in tags] for tags in y]
gg.LinearChainCRF().fit(X, y).predict(X)
"""
_TREE = (
    _BLOBS
    + "import gramgraph as gg\nw = rng.normal(size=1000)\n"
    + ('gg.learn_tree({"a": w, "b": w**2 + 0.1 * rng.normal(size=1000), "c": np.where(w > 0, "u", "v")})')
)
_HMMLEARN = "from hmmlearn.hmm import GaussianHMM\nGaussianHMM(3, random_state=0).fit(x).predict(x)"


def _ours(name: str, use: str) -> str:
    return f"{_BLOBS}import gramgraph as gg\n{use.format(name='gg.' + name)}"


def _sklearn(module: str, name: str, use: str) -> str:
    return f"{_BLOBS}from sklearn.{module} import {name}\n{use.format(name=name)}"


@dataclass(frozen=True)
class Task:
    """A program of ours and those of peers; `{NETWORK}` in it is the path of a file of that name."""

    ours: str
    peers: dict[str, str]


_READ = 'import gramgraph as gg\nnet = gg.read("{alarm}")\n'
_AGRUM = 'import pyagrum as gum\nbn = gum.loadBN("{alarm_plain}")\n'
_PGMPY = 'from pgmpy.readwrite import BIFReader\nnet = BIFReader("{alarm_plain}").get_model()\n'
_CASES = "rows = net.sample(1000, random_state=0)[list(net.variables)[::9]]\n"
_WARM_UP = "import gramgraph as gg\ngg.warmup(progress=False)"
#: How often each side runs.
REPEATS = 3
_NUMBERS, _CLASSES = "{name}().fit(X, t).predict(X)", "{name}().fit(X, y).predict(X)"

TASKS: dict[str, Task] = {
    "nothing but importing NumPy": Task("import numpy", {"sklearn": "import sklearn.base"}),
    "asia, one question": Task('import gramgraph as gg\ngg.datasets.asia().query("lung", {"smoke": "yes"})', {}),
    "alarm, one question": Task(
        _READ + 'net.query("LVFAILURE", {"HR": "HIGH"})',
        {
            "pyagrum": _AGRUM + 'e = gum.LazyPropagation(bn); e.setEvidence({"HR": "HIGH"}); e.posterior("LVFAILURE")',
            "pgmpy": _PGMPY
            + 'from pgmpy.inference import VariableElimination as V\nV(net).query(["LVFAILURE"], {"HR": "HIGH"})',
        },
    ),
    "alarm, best assignment": Task(_READ + 'net.map_query({"HR": "HIGH"})', {}),
    "alarm, 1,000 cases": Task(_READ + _CASES + "net.query(None, rows)", {}),
    "alarm, fit 10,000 rows": Task(_READ + "net.fit(net.sample(10000, random_state=0))", {}),
    "alarm, hill climbing on 2,000 rows": Task(_READ + "gg.learn_structure(net.sample(2000, random_state=0))", {}),
    "munin, one question": Task(
        'import gramgraph as gg\nnet = gg.read("{munin}")\nnet.query(list(net.variables)[-1])', {}
    ),
    "mixed network of the guide": Task(_MIXED, {}),
    "linear-Gaussian network": Task(_LINES, {}),
    "CRF, 50 sentences": Task(_CRF, {}),
    "GaussianHMM (3 states, 500 steps)": Task(
        _SERIES + "import gramgraph as gg\ngg.GaussianHMM(3, random_state=0).fit(x).predict(x)",
        {"hmmlearn": _SERIES + _HMMLEARN},
    ),
    "KalmanFilter (500 steps)": Task(
        _SERIES + "import gramgraph as gg\n"
        "gg.KalmanFilter([[1.0]], [[1.0]], [[0.1]], [[1.0]], [0.0], [[1.0]]).smooth(x)",
        {},
    ),
    "structural series (60 steps)": Task(
        "import numpy as np\nfrom gramgraph.sequences import Season, Trend\n"
        "(Trend() + Season(4)).fit(np.cumsum(np.random.default_rng(0).normal(size=60)))",
        {},
    ),
    "SVC (200 points)": Task(_ours("SVC", _CLASSES), {"sklearn": _sklearn("svm", "SVC", _CLASSES)}),
    "SVR": Task(_ours("SVR", _NUMBERS), {"sklearn": _sklearn("svm", "SVR", _NUMBERS)}),
    "GaussianProcessRegressor": Task(
        _ours("GaussianProcessRegressor", _NUMBERS),
        {"sklearn": _sklearn("gaussian_process", "GaussianProcessRegressor", _NUMBERS)},
    ),
    "GaussianProcessClassifier": Task(
        _ours("GaussianProcessClassifier", _CLASSES),
        {"sklearn": _sklearn("gaussian_process", "GaussianProcessClassifier", _CLASSES)},
    ),
    "KernelPCA": Task(
        _ours("KernelPCA", "{name}(2).fit_transform(X)"),
        {"sklearn": _sklearn("decomposition", "KernelPCA", '{name}(2, kernel="rbf").fit_transform(X)')},
    ),
    "RVR": Task(_ours("RVR", _NUMBERS), {}),
    "learn_tree (3 columns, 1,000 rows)": Task(_TREE, {}),
}


def cpu_seconds(program: str, cache: Path, limit: float) -> float | str:
    """CPU seconds of a process that runs the program, and of its children; or why there are none."""
    source = str(Path(__file__).parents[1] / "src")
    environment = {k: v for k, v in os.environ.items() if k not in ("GRAMGRAPH_TIER", "PYTHONDONTWRITEBYTECODE")}
    environment |= {**dict.fromkeys(THREAD_VARIABLES, "1"), "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": source}
    before = os.times()
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"> {limit:.0f} s"
    after = os.times()
    if done.returncode:
        return f"failed: {done.stderr.decode(errors='replace').strip().splitlines()[-1][:80]}"
    return after.children_user + after.children_system - before.children_user - before.children_system


def _row(
    made: Runner, name: str, task: Task, files: dict[str, str], peers: Sequence[str], limit: float, warm: Path
) -> tuple[str, str | None]:
    def filled(program: str) -> str:
        for key, path in files.items():
            program = program.replace(f"{{{key}}}", path)
        return program

    firsts, seconds = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            firsts.append(cpu_seconds(filled(task.ours), Path(folder), limit))
            compiled = sum(1 for _ in Path(folder).rglob("*.nbc"))
        seconds.append(cpu_seconds(filled(task.ours), warm, limit))
    first, second = _best(firsts), _best(seconds)
    for which, said in (("first process", first), ("second process", second)):
        made.records.append((Cell("cold_start", name, which, "gramgraph", 0.0, limit), _result(said)))
    beside = []
    for peer, program in task.peers.items():
        if peer in peers:
            best = _best([cpu_seconds(filled(program), warm, limit) for _ in range(REPEATS)])
            made.records.append((Cell("cold_start", name, "second process", peer, 0.0, limit), _result(best)))
            beside.append(f"{peer} {_shown(best)}")
    fault = next((f"{name}: {said}" for said in (first, second) if isinstance(said, str)), None)
    return f"| {name} | {_shown(first)} | {compiled} | {_shown(second)} | {', '.join(beside)} |", fault


def _best(runs: Sequence[float | str]) -> float | str:
    """The least seconds, or why there are none."""
    done = [each for each in runs if not isinstance(each, str)]
    return min(done) if done else runs[0]


def _result(said: float | str) -> Measurement | Failure:
    return Failure(said) if isinstance(said, str) else Measurement(said, said, 1, 1)


def _shown(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else f"{seconds:.2f} s"


def _files(folder: Path) -> dict[str, str]:
    """Paths of networks by name; peers read plain files only."""
    import gzip

    found = {name: str(path) for name, path in network_paths(["alarm", "munin"]).items()}
    if "alarm" in found:
        path = Path(found["alarm"])
        plain = folder / "alarm.bif"
        plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        found["alarm_plain"] = str(plain)
    return found


def report(
    made: Runner,
    *,
    networks: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Sequence[str] = _PEERS,
) -> tuple[str, list[str]]:
    """The table, and what failed. `tasks` are parts of names; --quick takes the first of each kind."""
    chosen = {name: task for name, task in TASKS.items() if tasks is None or any(part in name for part in tasks)}
    if quick and tasks is None:
        chosen = {name: chosen[name] for name in ("asia, one question", "SVC (200 points)")}
    chosen = {name: task for name, task in chosen.items() if made.rows is None or name in made.rows}
    peers = [peer for peer in with_peers if installed(peer)]
    lines, faults = [], []
    compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        files = _files(Path(folder))
        if not quick:
            cpu_seconds(_WARM_UP, Path(folder), limit or 300.0)
        for name, task in chosen.items():
            missing = [key for key in ("alarm", "munin") if f"{{{key}}}" in task.ours and key not in files]
            if missing:
                lines.append(f"| {name} | no file of {missing[0]} | | | |")
                continue
            line, fault = _row(made, name, task, files, peers, limit or 300.0, Path(folder))
            print(line, file=sys.stderr, flush=True)
            lines.append(line)
            faults += [fault] if fault else []
    head = [
        "# First answer, from an empty cache",
        "",
        f"{versions(['numba', 'pyagrum', 'pgmpy', 'hmmlearn', 'scikit-learn'])}. CPU seconds of the process and its "
        "children from the start of the interpreter, one thread.",
        "",
        "| task | first process | compiled | second process | peers |",
        "|:--|--:|--:|--:|:--|",
    ]
    return "\n".join([*head, *lines, ""]), faults
