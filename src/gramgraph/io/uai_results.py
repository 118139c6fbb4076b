"""The files beside a UAI model: evidence, queries, results.

Evidence comes in the formats of its years, told apart by how many numbers there are:

* `k  v1 s1 … vk sk` — one set of k observations (2006, 2014, 2022), on one line or on several;
* `m` and then m such sets (2008, 2011), normally one set per line;
* `0` — no evidence; whatever follows is ignored, as the programs of the field do.

Where the numbers fit both readings, the second is taken only if the first line holds m alone and each of the next m
lines is one whole set.

Results begin with the task. `PR`: log10 of the partition function or of p(e). `MAR`: number of variables, then for each
its number of states and probabilities. `MPE`, `MAP`: number of variables, then their states. `MMAP`: number of query
variables, then their states (2014) or pairs of variable and state (2016). Of several solutions, parted by `-BEGIN-`,
the last counts; a count `1` of solutions before the solution (2011) is allowed.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from os import PathLike
from os.path import splitext
from typing import Any

import numpy as np

from gramgraph._replace import write_whole
from gramgraph.exceptions import ParseError
from gramgraph.io._stream import NumberStream
from gramgraph.io._text import decode, line_column, shown
from gramgraph.io.registry import inflate
from gramgraph.io.uai import without_comments
from gramgraph.typing import FloatArray

_KINDS = ("PR", "MAR", "MPE", "MAP", "MMAP")


@dataclass(frozen=True, eq=False)
class UaiResult:
    """An answer as the competitions write it; which fields are filled follows from `kind`.

    Parameters
    ----------
    kind : "PR", "MAR", "MPE", "MAP" or "MMAP".
    log10 : PR.
    marginals : MAR: one distribution per variable.
    states : MPE, MAP, MMAP.
    variables : MMAP with pairs: whose states these are.

    Examples
    --------
    >>> UaiResult("PR", log10=-2.0).log_z
    -4.605170185988091
    """

    kind: str  # "PR", "MAR", "MPE", "MAP" or "MMAP"
    log10: float | None = None  # PR
    marginals: tuple[FloatArray, ...] = ()  # MAR: one distribution per variable
    states: tuple[int, ...] = ()  # MPE, MAP, MMAP
    variables: tuple[int, ...] | None = None  # MMAP with pairs: whose states these are

    @property
    def log_z(self) -> float | None:
        """The natural logarithm of the partition function, for PR."""
        return None if self.log10 is None else self.log10 * log(10.0)


def _read(path: str | PathLike[str]) -> tuple[str, str]:
    """Text and name of a file, unpacked if its name ends with .gz."""
    source = os.fspath(path)
    with open(source, "rb") as stream:
        data = stream.read()
    return without_comments(decode(inflate(data, source=source) if source.lower().endswith(".gz") else data)), source


def _write(path: str | PathLike[str], text: str) -> None:
    file = os.fspath(path)
    data = text.encode("ascii")
    write_whole(file, gzip.compress(data, mtime=0) if file.lower().endswith(".gz") else data)


def read_uai_evidence(path: str | PathLike[str], model: Any = None) -> list[dict[str, str]]:
    """The evidence sets of a file, each a dict from variable to state.

    With a model its names and states are used and the numbers are checked against it; without one variables are
    called x0, x1, … and states 0, 1, …. A file that says there is no evidence gives one empty set.

    Parameters
    ----------
    path : the file.
    model : the model that the numbers belong to; None names them x0, x1, …

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "case.evid")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write("1 2 0")
    ...     read_uai_evidence(file)
    [{'x2': '0'}]
    """
    text, source = _read(path)
    stream = NumberStream(text, 0, source)
    if stream.values.size == 0:
        return [{}]
    return [_named(stream, where, model) for where in _evidence_sets(stream, text)]


def _evidence_sets(stream: NumberStream, text: str) -> list[range]:
    """Where the pairs of each set begin, as ranges of positions of the variables."""
    n = stream.values.size
    k = stream.count("the number of observations")
    if k == 0:
        return [range(0)]
    several = _several(stream, k)
    if 1 + 2 * k == n and not (several and _one_set_a_line(text, k)):
        return [range(1, n, 2)]
    if several is None:
        stream.pos = 0
        stream.fail(
            f"{n} numbers are neither {k} observations (which take {1 + 2 * k}) nor {k} sets of observations, each "
            "with its count before it"
        )
    return several


def _several(stream: NumberStream, n_sets: int) -> list[range] | None:
    """The sets if the numbers can be read as a count of sets and the sets; None if they cannot."""
    values, at, sets = stream.values, 1, []
    if n_sets >= values.size:
        return None
    for _ in range(n_sets):
        if at >= values.size or not 0 <= values[at] <= values.size or values[at] % 1:
            return None
        end = at + 1 + 2 * int(values[at])
        sets.append(range(at + 1, end, 2))
        at = end
    return sets if at == values.size else None


def _one_set_a_line(text: str, n_sets: int) -> bool:
    """Whether the first line holds one number and each of the next lines a whole set."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    whole = all(len(line) == 1 + 2 * float(line[0]) for line in lines[1:])
    return len(lines) == n_sets + 1 and len(lines[0]) == 1 and whole


def _named(stream: NumberStream, where: range, model: Any) -> dict[str, str]:
    evidence: dict[str, str] = {}
    names = model.variables if model is not None else None
    for at in where:
        stream.pos = at
        variable, state = stream.count("a variable"), stream.count("a state")
        if names is None:
            name, label = f"x{variable}", str(state)
        else:
            if variable >= len(names):
                stream.fail(f"variable {variable} is observed; the model has {len(names)}, counted from 0", at)
            name = names[variable]
            states = model.states(name)
            if state >= len(states):
                stream.fail(f"{name} has {len(states)} states, counted from 0; {state} is none", at + 1)
            label = states[state]
        if evidence.setdefault(name, label) != label:
            stream.fail(f"{name} is observed as {evidence[name]} and as {label}", at)
    return evidence


def read_uai_query(path: str | PathLike[str], model: Any = None) -> list[str]:
    """The query variables of a marginal-MAP file: their number, then which; names as in `read_uai_evidence`.

    Parameters
    ----------
    path : the file.
    model : the model that the numbers belong to; None names them x0, x1, …

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "case.query")
    ...     with open(file, "w") as stream:
    ...         _ = stream.write("2 0 3")
    ...     read_uai_query(file)
    ['x0', 'x3']
    """
    text, source = _read(path)
    stream = NumberStream(text, 0, source)
    if stream.values.size == 0:
        return []
    wanted = stream.counts(stream.count("the number of query variables"), "a query variable")
    if stream.left:
        stream.fail(f"{stream.left} numbers more than announced")
    if model is None:
        return [f"x{i}" for i in wanted]
    for at, i in enumerate(wanted, 1):
        if i >= len(model.variables):
            stream.fail(f"variable {i} is asked for; the model has {len(model.variables)}, counted from 0", at)
    return [model.variables[i] for i in wanted]


def read_uai_result(path: str | PathLike[str]) -> UaiResult:
    """The last solution in a result file; the task is its first word, or else the file's suffix.

    Parameters
    ----------
    path : the file.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "found.PR")
    ...     write_uai_result(UaiResult("PR", log10=-2.0), file)
    ...     read_uai_result(file).log10
    -2.0
    """
    text, source = _read(path)
    words = text.split(maxsplit=1)
    kind = words[0].upper() if words else ""
    start = text.index(words[0]) + len(words[0]) if words else 0
    if kind not in _KINDS:
        stem = source[:-3] if source.lower().endswith(".gz") else source
        kind, start = splitext(stem)[1][1:].upper(), 0
        if kind not in _KINDS:
            line, column = line_column(text, text.index(words[0])) if words else (1, 1)
            message = f"expected one of {', '.join(_KINDS)}, got {shown(words[0]) if words else 'an empty file'}"
            raise ParseError(message, source=source, line=line, column=column)
    last = text.rfind("-BEGIN-")
    return _solution(kind, NumberStream(text, max(start, last + 7 if last >= 0 else 0), source))


def _solution(kind: str, stream: NumberStream) -> UaiResult:
    values = stream.values
    if kind == "PR":
        if values.size == 2 and values[0] == 1:
            stream.pos = 1
        number = float(stream.take(1, "log10 of the partition function")[0])
        if stream.left or number != number:
            stream.fail("expected one number, log10 of the partition function", 0)
        return UaiResult(kind, log10=number)
    if kind == "MAR":
        return UaiResult(kind, marginals=_marginals(stream))
    if values.size >= 2 and values[0] == 1 and values.size in (2 + values[1], 2 + 2 * values[1]):
        stream.pos = 1  # one solution is announced before it
    n = stream.count("the number of variables")
    if kind == "MMAP" and stream.left == 2 * n:
        pairs = stream.counts(2 * n, "a variable or state")
        return UaiResult(kind, states=tuple(pairs[1::2]), variables=tuple(pairs[::2]))
    states = stream.counts(n, "a state")
    if stream.left:
        stream.fail(f"{stream.left} numbers more than announced")
    return UaiResult(kind, states=tuple(states))


def _marginals(stream: NumberStream) -> tuple[FloatArray, ...]:
    """One distribution per variable; a count of solutions before them is skipped when only then the numbers fit."""
    for start in (0, 1):
        at = _after_marginals(stream.values, start)
        if at == stream.values.size or start or stream.values.size == 0 or stream.values[0] != 1:
            stream.pos = start
            break
    found = []
    for i in range(stream.count("the number of variables")):
        size = stream.count(f"the number of states of variable {i}")
        found.append(stream.take(size, f"the marginal of variable {i}").copy())
    if stream.left:
        stream.fail(f"{stream.left} numbers more than announced")
    return tuple(found)


def _after_marginals(values: FloatArray, at: int) -> int:
    """The position after the marginals that begin at `at`; -1 when they do not fit."""
    if at >= values.size:
        return -1
    n, at = float(values[at]), at + 1
    if not 0 <= n <= values.size:
        return -1
    for _ in range(int(n)):
        if at >= values.size or not 0 <= values[at] <= values.size:
            return -1
        at += 1 + int(values[at])
    return at


def write_uai_evidence(
    evidence: Mapping[str, Any] | Sequence[Mapping[str, Any]], path: str | PathLike[str], model: Any
) -> None:
    """Write one evidence set (a line `k v1 s1 …`) or several (their number, then a line each).

    Parameters
    ----------
    evidence : states by variable, or a list of such dicts.
    path : the file.
    model : the model that the numbers belong to.

    Examples
    --------
    >>> import os, tempfile
    >>> import gramgraph as gg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "case.evid")
    ...     write_uai_evidence({"rain": "yes"}, file, gg.datasets.sprinkler())
    ...     print(open(file).read().strip())
    1 3 1
    """
    several = not isinstance(evidence, Mapping)
    sets: Sequence[Mapping[str, Any]] = evidence if several else [evidence]  # type: ignore[list-item, assignment]
    lines = [str(len(sets))] if several else []
    for one in sets:
        pairs = [f"{model.index(name)} {model.var(name).index(value)}" for name, value in one.items()]
        lines.append(" ".join([str(len(one)), *pairs]))
    _write(path, "\n".join(lines) + "\n")


def write_uai_result(result: UaiResult, path: str | PathLike[str]) -> None:
    """Write a result as `read_uai_result` reads it.

    Parameters
    ----------
    result : what was found.
    path : the file.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "found.PR")
    ...     write_uai_result(UaiResult("PR", log10=-2.0), file)
    ...     print(open(file).read().split())
    ['PR', '-2.0']
    """
    if result.kind == "PR":
        words = [repr(float(result.log10 if result.log10 is not None else np.nan))]
    elif result.kind == "MAR":
        words = [str(len(result.marginals))]
        for marginal in result.marginals:
            words += [str(len(marginal)), *map(repr, np.asarray(marginal, dtype=np.float64).tolist())]
    else:
        words = [str(len(result.states))]
        for i, state in enumerate(result.states):
            words += [str(state)] if result.variables is None else [str(result.variables[i]), str(state)]
    _write(path, f"{result.kind}\n{' '.join(words)}\n")
