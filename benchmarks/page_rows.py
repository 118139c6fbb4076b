"""What docs/benchmarks.md shows, row by row: the cells of the result files that each figure comes from, and its goal.

Where a goal is missed, `missed` says why, with what takes the time. Goals that a module judges itself are taken
from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import counting, deterministic, hill_climbing, sequences, small_networks, threads, wide_tables
from benchmarks.curve_picture import curve_table, picture
from benchmarks.machines import ROWS as ROWS_OF
from benchmarks.page import (
    DOCS,
    ROOT,
    Files,
    Row,
    conditions,
    first_answers,
    first_answers_in_words,
    per_case,
    rewritten,
    roofline,
    table,
    values_table,
)  # fmt: skip

__all__ = ["ROWS", "made", "modules_shown", "rows_shown"]

AGRUM = ("pyagrum lazy", "pyagrum shafer")
LAZY = AGRUM[:1]
PGMPY = ("pgmpy elimination", "pgmpy propagation")
#: Networks of the table of times per case.
NETWORKS = ("alarm", "andes", "pigs", "munin", "mildew", "diabetes", "link")


def _discrete(text: str, task: str, peers: tuple[str, ...], peer_task: str = "") -> Row:
    return Row(text, "exact_discrete", task, peers=peers, peer_task=peer_task)


DISCRETE = (
    _discrete("1,000 different cases, same variables observed", "distinct", AGRUM),
    _discrete("1,000 cases as they are drawn; equal rows are computed once", "batch", AGRUM, "case"),
    _discrete("1,000 cases, each with its own observed variables", "mixed", AGRUM),
    _discrete("one warm case through `net.query`", "warm", AGRUM, "case"),
    _discrete("first answer of a fresh network, with a filled compile cache", "first", AGRUM),
    _discrete("most probable explanation, one case", "mpe", LAZY),
    _discrete("most probable explanation, 1,000 cases", "mpe_batch", LAZY, "mpe"),
    _discrete("reading a BIF file", "load", ("pyagrum",)),
    _discrete("1,000 cases as they are drawn, against pgmpy", "batch", PGMPY, "case"),
)


def _small(text: str, task: str, missed: str = "") -> Row:
    return Row(text, "small_networks", task, peers=LAZY, goal=small_networks.WANTED[task], missed=missed)


_SMALL = (
    _small(
        "first answer of a new small network",
        "first",
        "Python calls that lower the tables and prepare the sums; the smallest networks take 45 µs",
    ),
    _small("10 different rows, small networks", "batch 10", "reading the data frame takes half of it"),
    _small("100 different rows, small networks", "batch 100"),
    _small(
        "best assignments of 4 rows",
        "mpe 4",
        "with three variables some 65 µs: reading the rows, preparing the search and making the frame, a third each",
    ),
    _small("best assignments of 40 rows", "mpe 40"),
)
_WIDE = (
    Row(
        "different cases of wide tables, a case: mildew, diabetes", "wide_tables", "distinct", wide_tables.WIDE, AGRUM,
        goal=wide_tables.WANTED,
        missed="memory bounds it: most cells of mildew are in one table, which must be moved (see the roofline below)",
    ),
    Row(
        "peak memory of 200 cases of munin, libraries (130 MB) loaded before",
        "wide_tables", "memory distinct", (wide_tables.LARGE,), figure="peak",
        goal=wide_tables.WANTED_PEAK, missed="tables of eight cases side by side are most of it",
    ),
    Row(
        "tables full of zeros, exact: all posteriors", "deterministic", "query", deterministic.NAMED,
        goal=deterministic.WANTED,
    ),
    Row(
        "tables full of zeros, exact: log p(evidence)", "deterministic", "evidence", deterministic.NAMED,
        goal=deterministic.WANTED,
    ),
    Row(
        "tables full of zeros: best assignment", "deterministic", "map", deterministic.NAMED,
        goal=deterministic.WANTED,
    ),
    Row(
        "models too wide for an exact answer, without a budget: prob003.pddl.cnf, linkage_13, 2bitmax_6.cnf",
        "approximate_marginals", "ask", ("prob003.pddl.cnf", "linkage_13", "2bitmax_6.cnf"), goal=10.0,
        missed="a search, messages, chains and bounds are tried one after the other on linkage_13",
    ),
)  # fmt: skip


def _files(text: str, row: str, goal: float, figure: str = "rate", missed: str = "") -> Row:
    return Row(text, "file_questions", row.split()[0], (row,), figure=figure, goal=goal, missed=missed)


_ONE, _TWO, _ALL = "five targets, 1 thread", "five targets, 2 threads", "all targets, 1 thread"
_BUSY = "the clock on the wall counts what other work takes"
_FILES = (
    _files("cases of alarm from Parquet to Parquet, five targets, two threads", _TWO, 300_000, missed=_BUSY),
    _files("peak memory of it", _TWO, float(1 << 30), "peak"),
    _files("the same on one thread, of CPU time", _ONE, 150_000, "cpu rate"),
    _files("all posteriors, one thread, of CPU time", _ALL, 80_000, "cpu rate"),
)


def _climbing(columns: int) -> Row:
    return Row(
        f"hill climbing with BIC, {columns} columns, 10,000 rows", "hill_climbing", "search",
        (f"{columns} columns, 10,000 rows",), ("pyagrum",), goal=hill_climbing.AGAINST_PEER[columns],
    )  # fmt: skip


_EVERY_TEXT = "37 million texts at some 4 ns each, in one compiled look at every text"
_LEARNING = (
    *(
        Row(
            f"tables of alarm from 1,000,000 rows: {kind}", "counting", "tables", (kind,), ("pgmpy",),
            goal=wanted, missed=_EVERY_TEXT if kind == "Arrow texts" else "",
        )
        for kind, (_, wanted) in counting.KINDS.items()
    ),
    *map(_climbing, hill_climbing.AGAINST_PEER),
    Row("hill climbing, 500 columns", "hill_climbing", "search", ("500 columns, 10,000 rows",), goal=5.0),
    Row("hill climbing, 2,000 columns", "hill_climbing", "search", ("2000 columns, 10,000 rows",), goal=120.0),
    Row(
        "hill climbing, 2,000 columns: memory", "hill_climbing", "memory", ("2000 columns, 10,000 rows",),
        figure="peak", goal=float(2 << 30),
    ),
    Row("hill climbing with BIC, alarm, 100,000 rows", "learning", "full", ("hill climbing",), ("pyagrum",)),
    Row("the same", "learning", "full", ("hill climbing",), ("pgmpy",)),
    Row("a step of EM, alarm, 10,000 rows with gaps", "learning", "full", ("EM step",), ("pyagrum",)),
    Row("graphical lasso with cross-validation, p = 200", "graphical_lasso", "cv", ("random 200",), ("sklearn",)),
)  # fmt: skip


#: Rows that a busy machine moves to either side of their goal.
_AT_THE_GOAL = {
    "tiny": "of 1.8 ms a quarter is the compiled sums, a quarter Python around 25 steps, the rest reading dictionaries",
    "smoothing": "2.8 to 3.7 from run to run: small products, the filter and the unknown start take a third each",
    "20,000": "nine tenths are sums along one chain, whose steps wait for each other",
    "5 tokens": "2.5 µs in all, most of them one call from Python and the dictionaries of five tokens",
}


def _sequences(row: str) -> Row:
    peer, _, wanted = sequences.ROWS[row]
    missed = next((why for part, why in _AT_THE_GOAL.items() if part in row), "")
    return Row(row, "sequences", "time", (row,), (peer,), goal=wanted, missed=missed)


_SEQUENCES = (
    *map(_sequences, sequences.ROWS),
    Row("CRF: chunking and names, fit", "crf", "time", peers=("sklearn_crfsuite",), goal=2.0),
    Row(
        "CRF: chunking and names, tagging", "crf", "time", peers=("sklearn_crfsuite",), figure="tag, cpu", goal=2.0,
    ),
    Row("HMM posteriors, 8 Gaussian states, 100,000 rows", "hmm", "posteriors", ("gauss 8",), ("hmmlearn",), goal=10.0),
    Row(
        "the same against its faster implementation", "hmm", "posteriors", ("gauss 8",), ("hmmlearn scaling",),
    ),
    Row("a step of Baum–Welch, 8 Gaussian states", "hmm", "iteration", ("gauss 8",), ("hmmlearn",), goal=10.0),
    Row("Viterbi, 8 Gaussian states", "hmm", "viterbi", ("gauss 8",), ("hmmlearn",), goal=3.0),
    Row("Kalman smoother, 4 states, 100,000 steps", "hmm", "smooth", ("kalman 4",), ("statsmodels",), goal=2.0),
)  # fmt: skip


def _machines(text: str, task: str, rows: Sequence[str], goal: float, missed: str = "", peer: str = "sklearn") -> Row:
    return Row(text, "machines", task, tuple(rows), (peer,), goal=goal, missed=missed)


RELEVANT = ("sinc 100", "sinc 300", "diabetes 331", "autompg 300", "housing 300")
_SHAPES = ("tophat", "epanechnikov", "linear", "cosine")
_DIMENSIONS = (1, 2, 3, 6)
_MACHINES = (
    _machines("SVC on sparse text, 2,000 and 6,000 × 30,000", "sparse", ROWS_OF["sparse"], 2.0),
    _machines(
        "the same against `LinearSVC`", "sparse", ROWS_OF["sparse"], 0.5, peer="sklearn linear",
    ),
    _machines("SVC, polynomial and linear on letter", "products", ["letter, poly", "letter, linear"], 3.0),
    _machines(
        "SVC, polynomial and linear on pendigits", "products", ["pendigits, poly", "pendigits, linear"], 3.0,
    ),
    _machines(
        "SVC, polynomial and linear on a9a", "products", ["a9a 8,000, poly", "a9a 8,000, linear"], 3.0,
    ),
    _machines(
        "kernel density, compact shapes", "density", [f"d = {d}, {s}" for d in _DIMENSIONS for s in _SHAPES], 2.0,
    ),
    _machines(
        "kernel density, Gaussian and exponential", "density",
        [f"d = {d}, {s}" for d in _DIMENSIONS for s in ("gaussian", "exponential")], 2.0,
    ),
    _machines(
        "kernel density, Gaussian with rtol = 1e-4", "density", [f"d = {d}, gaussian rtol=1e-4" for d in _DIMENSIONS],
        2.0,
    ),
    _machines(
        "one row: `predict` of SVC and SVR", "one row", [f"{k} n={n}" for k in ("SVC", "SVR") for n in (200, 1000)],
        3.0, "with 1,000 points it moves between 2.3 and 3.3 from run to run, most of it Python around one product",
    ),
    _machines("one row: `predict` of a Gaussian process", "one row", ["GPR n=200", "GPR n=1000"], 3.0),
    Row(
        "Gaussian process, fit with 5 restarts, n = 2,000", "machines", "process", ("n=2000",), goal=3.6,
    ),
    Row(
        "Gaussian process, fit with 5 restarts, n = 4,000", "machines", "process", ("n=4000",), goal=27.7,
    ),
    *(
        Row(
            "Gaussian process, evidence and gradient, n = 2,000", "gp", "evidence", ("n=2000 d=8",), (peer,), goal=goal,
            missed="Cholesky factor and inverse take most of it, and they are the same for both",
        )
        for peer, goal in (("sklearn", 4.0), ("GPy", 2.0))
    ),
    Row("Gaussian process, fit with 5 restarts, n = 1,000", "gp", "fit", ("n=1000 d=4",), ("sklearn",), goal=10.0),
    Row("Matérn-3/2 at 100,000 times: evidence", "gp", "line", ("n=100000",)),
    Row(
        "Gaussian process classification, n = 1,000: fit", "gp_classifier", "fit", ("1000 one length scale",),
        ("sklearn",), goal=5.0,
    ),
    Row("RBF Gram matrix, n = 5,000, d = 10", "kernel_machines", "gram10", peers=("sklearn rbf_kernel",), goal=2.0),
    Row("RBF Gram matrix, n = 5,000, d = 100", "kernel_machines", "gram100", peers=("sklearn rbf_kernel",), goal=2.0),
    Row(
        "KernelPCA, n = 10,000", "kernel_machines", "pca", peers=("sklearn arpack", "sklearn randomized"), goal=1.0,
    ),
    Row("Nyström ridge, n = 100,000", "kernel_machines", "nystrom", peers=("sklearn pipeline",), goal=3.0),
    Row("SVC 20,000 × 50, C = 1", "svm", "fit", ("20,000 × 50, C = 1",), ("sklearn",), goal=3.0),
    Row("the same", "svm", "fit", ("20,000 × 50, C = 1",), ("sklearnex",)),
    Row("SVC on digits, ten classes", "svm", "fit", ("digits, pairs of 10 classes",), ("sklearn",), goal=3.0),
    Row("SVC 20,000 × 50: `predict` of all points", "svm", "predict", ("20,000 × 50, C = 1",), ("sklearn",), goal=4.0),
    Row("the same", "svm", "predict", ("20,000 × 50, C = 1",), ("sklearnex",)),
    Row("SVC, grid of 250 fits", "svm", "grid", ("1,000 × 10 grid",), ("sklearn",), goal=10.0),
    Row(
        "relevance vectors, `average=False`", "rvm", "fit", RELEVANT, ("fastrvm",), ours="gramgraph plain",
        goal=0.5, missed="rounds of re-estimation and the products of columns, both LAPACK and BLAS",
    ),
)  # fmt: skip


def _mixtures(text: str, row: str, goal: float, missed: str = "") -> Row:
    return Row(text, "mixtures", "time", (row,), ("sklearn",), goal=goal, missed=missed)


_WHITENING = "half of it is one product of matrices, which other work slows most (2.4 to 3.0 under load)"
_OTHERS = (
    _mixtures("Gaussian mixture, 100,000 × 10, 8 components, a step of EM", "mixture", 5.0),
    _mixtures("GaussianClassifier with shared covariance", "shared", 3.0),
    _mixtures("GaussianClassifier with a covariance a class", "own", 3.0, _WHITENING),
    _mixtures("GaussianClassifier with diagonal covariances", "diagonal", 3.0),
    _mixtures("Bayesian logistic regression, 50,000 × 50, posterior included", "logistic", 1.0),
    Row("200 AdaBoost stumps, spam", "boosting", "fit", ("stumps spam",), ("sklearn",), goal=8.0),
    Row("200 AdaBoost stumps, 20,000 × 50", "boosting", "fit", ("stumps 20000x50",), ("sklearn",), goal=8.0),
    Row("100 boosted trees of depth 3, 10,000 × 50", "boosting", "fit", ("trees 10000x50",), ("sklearn",), goal=8.0),
    Row("a cascade of OpenCV over six images", "vision", "detect", peers=("cv2",), goal=0.5),
    Row(
        "topics, whole fit at no worse perplexity: Reuters", "topics", "fit", ("fit reuters",), ("sklearn batch",),
        ours="gramgraph collapsed", goal=20.0,
    ),
    Row(
        "topics, a sweep of Gibbs sampling: Reuters", "topics", "sweep", ("sweep reuters",), ("tomotopy",),
        ours="gramgraph gibbs", goal=1.0,
    ),
)  # fmt: skip

LANES = (*_SMALL, *_WIDE, *_FILES, *_LEARNING, *_SEQUENCES, *_MACHINES, *_OTHERS)
#: What keeps a second thread from halving the time, by profiles: Python runs on one thread at a time.
_PLANS = "every case has its own observed variables and so a tree of its own: an eighth of the time is Python around it"
_OBJECTS = "a seventh is reading columns of objects and finding equal cases, on one thread; the rest waits for memory"
_EM = "a quarter is Python: reading the rows, planning each block, the tables of 37 families between steps"
_STEPS = "a step waits for the one before: reading, choosing and the tables of the network are Python"
_MATRIX = "most of the time goes into filling a matrix, to which two threads write at the rate of one memory"
_STAGES = "distances, machines and votes of the folds are stages that wait for each other, each with new memory"
_ASCENTS = "the best start is followed on all points by one ascent, and a fifth of each step is Python"
_HMM = "first states, a tenth, and choosing the numbers of the next step are Python; threads meet at each step"
_ONE_AT_A_TIME = {
    "exact batch, munin, 100 cases": _PLANS,
    "exact batch, munin, 400 cases": _PLANS,
    "exact batch, alarm, 100,000 rows": _OBJECTS,
    "exact batch, alarm, 500,000 rows": _OBJECTS,
    "EM, alarm, 20,000 rows with gaps": _EM,
    "EM, alarm, 100,000 rows with gaps": _EM,
    "hill climbing, hailfinder, 20,000 rows":
        "counting is a third of 0.2 s, in 215 passes of 0.3 ms, shorter than it takes to share them out",
    "hill climbing, hailfinder, 400,000 rows": _STEPS,
    "bootstrap of edges, alarm, 20 × 5,000 rows":
        "searches are mostly Python, so that threads gain nothing, and half a second saved does not pay for processes",
    "bootstrap of edges, alarm, 200 × 20,000 rows":
        "samples and graphs are sent to processes (kept from an earlier call) and back",
    "SVC, ten classes, 7,188 rows": _MATRIX,
    "SVC, ten classes, 17,970 rows": _MATRIX,
    "SVC grid, digits": _STAGES,
    "SVC grid, digits, 7,188 rows, 3 kernels": _STAGES,
    "GP with 7 restarts, n = 512": _ASCENTS,
    "GP with 7 restarts, n = 2,000":
        "one ascent is left in the end: products and factors of its matrices are shared out, the kernel is not",
    "RBF Gram matrix, n = 6,000": _MATRIX,
    "RBF Gram matrix, n = 18,000": _MATRIX,
    "Gibbs chains, alarm":
        "40 ms in all, in which chains are prepared and threads started",
    "Gibbs chains, alarm, 2,000,000 sweeps":
        "compiled chains that share nothing: single rounds gain 1.97, others wait for the second core",
    "GaussianHMM, 50 sequences of 1,000": _HMM,
    "GaussianHMM, 1,000 sequences of 1,000": _HMM,
    "tiny: exact batch, asia-sized, 20 rows":
        "both stay on one thread and do the same: a tenth of a millisecond is the machine",
    "tiny: RBF Gram matrix, n = 50":
        "both stay on one thread and do the same: a tenth of 160 µs is the machine",
    "questions from two threads, alarm":
        "two threads that share Python's lock; loops of plain Python lose as much",
}  # fmt: skip
THREADS = (
    *(Row(row, "threads", "threads", (row,), figure="ratio", plain=True) for row in threads.ROOFS),
    *(
        Row(
            row, "threads", "threads", (row,), figure="ratio", plain=True, goal=wanted,
            missed=_ONE_AT_A_TIME.get(row, ""),
        )
        for row, (_, wanted) in threads.ROWS.items()
    ),
)  # fmt: skip
#: Tasks whose first answer README tells.
FIRST = ("alarm, one question", "alarm, 1,000 cases", "GaussianHMM (3 states, 500 steps)", "SVC (200 points)")
#: Searches end in different graphs: what they are worth stands beside their times.
SCORED = tuple(f"{columns} columns, 10,000 rows" for columns in hill_climbing.AGAINST_PEER)
SCORES = {"BIC": "BIC of the graph", "edges": "edges"}
#: Rows and values of kernel trees: errors, held-out nats, seconds.
TREES, TREE_VALUES = ("tree 0 5000",), {
    "rmse": "error to the exact posterior mean",
    "gap": "log score below the exact posterior's, nats",
    "cover90": "90 % intervals cover",
    "fit and structure": "fit with structure, s",
    "ask": "1,000 cases, s",
    "MB": "MB",
}  # fmt: skip
RESIDUES, RESIDUE_VALUES = ("arg 5000", "lys 2000", "met 2000"), {"nats": "held-out nats a residue"}
ROWS = (*DISCRETE, *LANES, *THREADS)


def modules_shown() -> list[str]:
    """The modules whose figures the pages show."""
    return [*dict.fromkeys(row.module for row in ROWS), "cold_start", "kernel_trees", "curves"]


def rows_shown(module: str) -> frozenset[str] | None:
    """The rows of a module that the page shows; None: all of them."""
    named = [row.rows for row in ROWS if row.module == module]
    named += [(*TREES, *RESIDUES)] if module == "kernel_trees" else []
    return frozenset(name for rows in named for name in rows) if named and all(named) else None


def made(files: Files) -> dict[Path, str]:
    """What the files make of the pages, and of the drawing."""
    curves = files.get("curves")
    parts = {
        "benchmarks.md": {
            "discrete": f"{table(DISCRETE, files)}\n\n{per_case(NETWORKS, files)}",
            "cold": first_answers(files),
            "lanes": table(LANES, files),
            "roof": roofline(files),
            "threads": table(THREADS, files),
            "scores": values_table(
                "hill_climbing", SCORED, {"BIC": "BIC of the graph found", "edges": "edges"}, files, 9
            ),
            "trees": values_table("kernel_trees", TREES, TREE_VALUES, files),
            "residues": values_table("kernel_trees", RESIDUES, RESIDUE_VALUES, files),
            "conditions": conditions(modules_shown()[:-1], files),
        },
        "curves.md": {"curves": curve_table(curves), "conditions": conditions(["curves"], files)},
    }
    pages = {DOCS / name: new for name, new in parts.items()}
    pages[ROOT / "README.md"] = {"first": first_answers_in_words(FIRST, files)}
    texts = {path: rewritten(path.read_text(encoding="utf-8"), new) for path, new in pages.items()}
    return texts | {DOCS / "curves.svg": picture(curves)}
