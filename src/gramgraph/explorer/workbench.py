"""Several models behind one page: the one that was opened, and those that were dropped on it or learned there.

Every model has a key that travels with the questions of a page, so that a model learned in one tab does not appear in
another.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from gramgraph._show import clean
from gramgraph.exceptions import GramGraphError, OptionError, VariableError
from gramgraph.explorer.waiting import Waiting, always
from gramgraph.models import BayesianNetwork

TABLES = (".csv", ".tsv", ".parquet")
NETWORKS = (".bif", ".xmlbif", ".xml", ".uai", ".net", ".xdsl", ".json")
#: Tables and models kept at once: the oldest goes.
KEPT = 12
#: How a user can have a column taken.
KINDS = ("as it is", "category", "intervals", "leave out")


_COLLECTING = threading.Lock()


class _Cancelled(Exception):
    """The page asked to stop."""


class _Job:
    """Work that goes on while the page looks."""

    def __init__(self, work: Callable[[_Job], dict[str, Any]]) -> None:
        self.done, self.total, self.cancelled = 0, 0, False
        self.result: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[_Job], dict[str, Any]]) -> None:
        try:
            # Warnings are the process's, not the thread's: one job at a time collects them.
            with _COLLECTING, warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = work(self)
            self.result = found | {"notes": list(dict.fromkeys(str(w.message) for w in said))[:5]}
        except _Cancelled:
            self.result = {"cancelled": True}
        except GramGraphError as error:
            self.result = {"error": str(error)}
        except MemoryError:
            self.result = {"error": "There is not enough memory for this."}
        except Exception as error:  # a fault of ours: the page shall not wait forever
            self.result = {"error": f"This failed: {type(error).__name__}: {error}"}

    def report(self, done: int, total: int) -> None:
        """Called by the learner."""
        self.done, self.total = int(done), int(total)
        if self.cancelled:
            raise _Cancelled

    def wait(self) -> dict[str, Any]:
        """The result, when it is there."""
        self._thread.join()
        assert self.result is not None
        return self.result


class Workbench:
    """The views of several models, tables to learn from, and the work that goes on."""

    kind = "workbench"

    def __init__(self, model: Any = None, title: str | None = None, source: str | None = None) -> None:
        self._keys = (f"m{i}" for i in itertools.count(1))
        self._views: dict[str, Any] = {}
        self._tables: dict[str, Any] = {}
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()
        self._first: str | None = None
        if model is not None:
            from gramgraph.explorer.views import view_of

            self._first = self._add(view_of(model, title=title, source=source))
        self.actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "columns": self.columns,
            "learn": self.learn,
            "job": self.job,
            "cancel": self.cancel,
            "refit": self.refit,
            "strengths": self.strengths,
            "average": self.average,
            "edit": self.edit,
        }

    @property
    def first(self) -> Any:
        """The view of the model that was opened first; None where there is none."""
        return None if self._first is None else self._views[self._first]

    def _add(self, thing: Any, where: dict[str, Any] | None = None) -> str:
        with self._lock:
            held = self._views if where is None else where
            key = next(self._keys)
            held[key] = thing
            while len(held) > KEPT:
                oldest = next(name for name in held if name != self._first)
                held.pop(oldest)
        return key

    def prepare(self) -> None:
        """Draw the model that was opened before somebody looks."""
        ready = getattr(self.first, "prepare", None)
        if ready is not None:
            ready()

    def request(self, name: str, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
        """A question about tables and learning, or one about the model whose key it carries."""
        action = self.actions.get(name)
        if action is not None:
            try:
                return action(body)
            except GramGraphError as error:
                return {"error": str(error)}
        key = body.get("model") or self._first
        view = self._views.get(key) if isinstance(key, str) else None
        if view is None:
            if name != "model":
                return {"error": "This model is not here any more. Open it again."}
            if self._first is None:
                return {"kind": "empty", "title": "gramgraph explorer", "can": ["learn"], "cannot": {}}
            key, view = self._first, self._views[self._first]
        found: dict[str, Any] = view.request(name, body, waiting)
        if name == "model" and "error" not in found:
            found = found | {"key": key, "learns": True, "edits": _has_tables(view)}
            if getattr(view, "frame", None) is not None:
                found["learned"] = {"required": view.arcs[0], "forbidden": view.arcs[1]}
        return found

    # ------------------------------------------------------------------------------------------ files

    def upload(self, path: Path, name: str) -> dict[str, Any]:
        """A dropped file: a table becomes one to learn from, a network opens."""
        name = clean(unquote(name))[:200]
        suffix = _suffix(name)
        named = path.with_name("upload" + suffix)
        path.rename(named)
        if suffix.removesuffix(".gz") in TABLES:
            return self.load_table(named, name)
        from gramgraph.io import read

        model = read(named)
        title = getattr(model, "name", "") or name.partition(".")[0]
        return {"model": self._add(_view(model, title, f"gg.read({name!r})"))}

    def load_table(self, path: Path, name: str) -> dict[str, Any]:
        """Read a table, and tell what its columns are taken for."""
        import pandas as pd

        try:
            if path.name.endswith(".parquet"):
                frame = pd.read_parquet(path)
            else:
                frame = pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",")
        except ImportError as error:
            raise OptionError(str(error)) from None
        except Exception as error:  # parsers of others raise what they like
            raise OptionError(f"{name} could not be read: {error}") from None
        frame.columns = [str(column) for column in frame.columns]
        self._table = self._add((name, frame), self._tables)
        return self.columns({"table": self._table})

    def _frame(self, body: dict[str, Any]) -> tuple[str, Any]:
        found = self._tables.get(str(body.get("table")))
        if found is None:
            raise VariableError("this table is not here any more. Drop it again")
        return found  # type: ignore[no-any-return]

    def columns(self, body: dict[str, Any]) -> dict[str, Any]:
        """What each column is taken for, and its gaps."""
        from gramgraph.data import describe

        name, frame = self._frame(body)
        found = describe(frame)
        rows = [
            {
                "column": str(row["column"]),
                "kind": str(row["taken as"]),
                "why": str(row["why"]),
                "states": int(row["states"]),
                "missing": int(row["missing"]),
            }
            for row in found.to_dict(orient="records")
        ]
        return {"table": str(body["table"]), "name": name, "rows": len(frame), "columns": rows, "kinds": list(KINDS)}

    # ------------------------------------------------------------------------------------------ learning

    def learn(self, body: dict[str, Any]) -> dict[str, Any]:
        """Start to learn; `job` tells how far it is."""
        if body.get("again"):
            view = self._learned(body)
            name, frame, plain = view.file, view.frame, view.source is not None
        else:
            name, frame = self._frame(body)
            kinds = body.get("kinds") or {}
            frame = _prepared(frame, kinds)
            plain = set(kinds.values()) <= {KINDS[0]}
        required, forbidden = (_arcs(body.get(key), frame) for key in ("required", "forbidden"))
        source = f"gg.learn_structure({name!r}, required={required}, forbidden={forbidden})" if plain else None

        def work(job: _Job) -> dict[str, Any]:
            from gramgraph.learn import learn_structure

            net = learn_structure(frame, required=required, forbidden=forbidden, progress=job.report)
            return {"model": self._opened(net, frame, name, (required, forbidden), source)}

        return {"job": self._start(work)}

    def learn_now(self) -> None:
        """Learn from the table that was loaded last, and open the network."""
        key = self._jobs[self.learn({"table": self._table})["job"]].wait()
        if "error" in key:
            raise OptionError(str(key["error"]))
        self._first = str(key["model"])

    def _opened(self, net: Any, frame: Any, file: str, arcs: tuple[Any, Any], source: str | None = None) -> str:
        """Open a learned network: it remembers the table, and the arcs that were asked for."""
        view = _view(net, file.partition(".")[0], source)
        view.file, view.frame, view.arcs = file, frame, arcs
        return self._add(view)

    def _start(self, work: Callable[[_Job], dict[str, Any]]) -> str:
        return self._add(_Job(work), self._jobs)

    def _job(self, body: dict[str, Any]) -> _Job:
        found = self._jobs.get(str(body.get("job")))
        if found is None:
            raise OptionError("this work is not known any more")
        return found

    def job(self, body: dict[str, Any]) -> dict[str, Any]:
        """How far the work is, or its result."""
        job = self._job(body)
        return {"done": job.done, "total": job.total} if job.result is None else {"result": job.result}

    def cancel(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask the work to stop; nothing is changed."""
        self._job(body).cancelled = True
        return {}

    def _learned(self, body: dict[str, Any]) -> Any:
        view = self._views.get(str(body.get("model")))
        if view is None or getattr(view, "frame", None) is None:
            raise OptionError("this needs a model that was learned from a table here")
        return view

    def refit(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same graph, its numbers learned again from the table, with counts added to every entry."""
        view = self._learned(body)
        prior = body.get("prior")
        if prior not in (None, "bdeu", "k2"):
            raise OptionError("prior is bdeu, k2 or none")

        def work(job: _Job) -> dict[str, Any]:
            net = view.model.fit(view.frame, prior=prior)
            source = None if view.source is None else f"{view.source}.fit({view.file!r}, prior={prior!r})"
            return {"model": self._opened(net, view.frame, view.file, view.arcs, source)}

        return {"job": self._start(work)}

    def edit(self, body: dict[str, Any]) -> dict[str, Any]:
        """A network with other numbers in the table of one variable; every row is scaled to sum to one."""
        from gramgraph.conditionals import Table

        view = self._views.get(str(body.get("model") or self._first))
        if view is None or not _has_tables(view):
            raise OptionError("tables of networks whose variables all have states can be edited")
        net: Any = view.model
        var = net.var(str(body.get("name")))
        old = net.conditional(var.name)
        values = _rows(body.get("rows"), var.name, old.table().reshape(-1, var.size).shape)
        table = Table(var, tuple(old.parents), values / values.sum(axis=1, keepdims=True))
        parts = [table if other == var.name else net.conditional(other) for other in net.variables]
        made = _view(BayesianNetwork.from_parts(net.vars, parts, name=net.name), view.title, None)
        for name in ("file", "frame", "arcs"):
            setattr(made, name, getattr(view, name, None))
        return {"model": self._add(made)}

    def strengths(self, body: dict[str, Any]) -> dict[str, Any]:
        """How often each edge is found in samples of the rows."""
        view = self._learned(body)

        def work(job: _Job) -> dict[str, Any]:
            from gramgraph.learn import bootstrap_edges

            view.strengths = bootstrap_edges(view.frame, 30, random_state=0, progress=job.report)
            frame = view.strengths.to_frame()
            rows = [[str(r["from"]), str(r["to"]), float(r["strength"])] for r in frame.to_dict(orient="records")]
            return {"rows": rows}

        return {"job": self._start(work)}

    def average(self, body: dict[str, Any]) -> dict[str, Any]:
        """The network of the edges that are found at least this often."""
        view = self._learned(body)
        if getattr(view, "strengths", None) is None:
            raise OptionError("the strengths of the edges are not known yet")
        net = view.strengths.average_network(float(body.get("threshold") or 0.5))
        if getattr(net, "faults", list)():
            net = net.fit(view.frame)
        key = self._opened(net, view.frame, view.file, view.arcs)
        self._views[key].strengths = view.strengths
        return {"model": key}

    def close(self) -> None:
        """Stop all work."""
        for job in self._jobs.values():
            job.cancelled = True


def _has_tables(view: Any) -> bool:
    """Whether the numbers of the model stand in tables, one of each variable."""
    model = getattr(view, "model", None)
    return isinstance(model, BayesianNetwork) and model.is_discrete


def _rows(rows: Any, name: str, shape: tuple[int, ...]) -> Any:
    """The numbers of a table as the page sends them, one list per row."""
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"the table of {name} holds numbers") from None
    if values.shape != shape:
        raise OptionError(f"the table of {name} has {shape[0]} rows of {shape[1]} numbers")
    if not np.isfinite(values).all() or (values < 0.0).any() or not (values.sum(axis=1) > 0.0).all():
        raise OptionError(f"in the table of {name} no number is negative, and no row is all zero")
    return values


def _view(model: Any, title: str, source: str | None) -> Any:
    from gramgraph.explorer.views import view_of

    return view_of(model, title=title, source=source)


def _suffix(name: str) -> str:
    """The suffix of a dropped file, one that we know."""
    lower = name.lower()
    packed = ".gz" if lower.endswith(".gz") else ""
    for suffix in (*TABLES, *NETWORKS):
        if lower.removesuffix(".gz").endswith(suffix):
            return suffix + packed
    raise OptionError(f"{name} is not a table or a network: {', '.join((*TABLES, *NETWORKS))} are read (also .gz)")


def _prepared(frame: Any, kinds: Any) -> Any:
    """The frame with its columns taken as the user wants them."""
    from gramgraph.data import Discretizer

    if not isinstance(kinds, dict):
        raise OptionError("kinds is an object: column → kind")
    frame = frame.copy()
    cut = []
    for column, kind in kinds.items():
        if column not in frame.columns:
            raise VariableError.unknown(column, list(frame.columns))
        if kind == "leave out":
            frame = frame.drop(columns=column)
        elif kind == "category":
            frame[column] = frame[column].astype("string").astype("category")
        elif kind == "intervals":
            cut.append(column)
        elif kind != "as it is":
            raise OptionError(f"{kind!r} is not a way to take a column. Ways: {', '.join(KINDS)}")
    return Discretizer(4, columns=cut).fit_transform(frame) if cut else frame


def _arcs(pairs: Any, frame: Any) -> list[tuple[str, str]]:
    if pairs is None:
        return []
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise OptionError("arcs are pairs of columns")
    known = set(map(str, frame.columns))
    return [(str(a), str(b)) for a, b in pairs if str(a) in known and str(b) in known]
