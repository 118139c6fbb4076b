"""Errors of the library: each one is a `GramGraphError` and also the standard class a caller would expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

__all__ = [
    "BudgetError",
    "ConvergenceWarning",
    "GramGraphError",
    "ImpossibleEvidenceError",
    "ModelError",
    "ModelWarning",
    "OptionError",
    "ParseError",
    "StateError",
    "VariableError",
    "did_you_mean",
    "listing",
]


def listing(names: Iterable[object], limit: int = 12) -> str:
    """`a, b, c` of at most `limit` names, then how many are left out.

    Parameters
    ----------
    names : what is listed.
    limit : how many at most.

    Examples
    --------
    >>> listing(["a", "b", "c", "d"], limit=2)
    'a, b, … (2 more)'
    """
    shown = [str(name) for name in names]
    if len(shown) > limit:
        return ", ".join(shown[:limit]) + f", … ({len(shown) - limit} more)"
    return ", ".join(shown)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A sentence with the nearest known word, or nothing when none is near.

    Parameters
    ----------
    word : what was written.
    known : words that exist.

    Examples
    --------
    >>> did_you_mean("smok", ["smoke", "lung"])
    " Did you mean 'smoke'?"
    """
    text = str(word)
    if len(text) > 100:  # comparing takes quadratic time: long words and very many of them are left alone
        return ""
    names = [name for name in islice(known, 5000) if len(name) <= 100]
    folded = text.casefold()
    near = [name for name in names if name.casefold() == folded and name != text] or get_close_matches(text, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class _PlainMessage:
    """`KeyError` shows its message in quotes; ours are sentences and are shown as they are."""

    def __str__(self) -> str:
        args: tuple[object, ...] = self.args  # type: ignore[attr-defined]
        return str(args[0]) if args else ""


class GramGraphError(Exception):
    """Base class of every error that the library raises on purpose.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.datasets.asia().query("lungs")
    ... except gg.GramGraphError as error:
    ...     print(type(error).__name__)
    VariableError
    """


class ModelWarning(UserWarning):
    """A model was usable only after a repair that the user should know of.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ModelWarning)  # what would be repaired is then an error
    """


class ConvergenceWarning(ModelWarning):
    """Work that goes on until nothing changes was ended before: its numbers are not what they would become.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ConvergenceWarning)  # a run that was ended early is then an error
    """


class VariableError(_PlainMessage, GramGraphError, KeyError):
    """A name that is not a variable of the model.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.datasets.asia().query("lungs")
    ... except gg.VariableError as error:
    ...     print("Did you mean" in str(error))
    True
    """

    @classmethod
    def unknown(cls, name: object, known: Sequence[str]) -> VariableError:
        """The error for a name that the model does not have."""
        return cls(f"{name!r} is not a variable of this model. Variables: {listing(known)}.{did_you_mean(name, known)}")


class StateError(_PlainMessage, GramGraphError, KeyError, ValueError):
    """A value that is not a state of its variable.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.datasets.asia().query("lung", {"smoke": "maybe"})
    ... except gg.StateError as error:
    ...     print(error)
    'maybe' is not a state of smoke. States: no, yes.
    """

    @classmethod
    def unknown(cls, value: object, variable: str, states: Sequence[str]) -> StateError:
        """The error for a label that the variable does not have."""
        hint = did_you_mean(value, states)
        if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            value = value.item()  # 1.5 rather than np.float64(1.5)
        return cls(f"{value!r} is not a state of {variable}. States: {listing(states)}.{hint}")


class ModelError(GramGraphError, ValueError):
    """A model that cannot be used; `faults` lists everything that is wrong with it.

    Parameters
    ----------
    faults : everything that is wrong, one sentence each.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.BayesianNetwork("a -> b -> a")
    ... except gg.ModelError as error:
    ...     print(len(error.faults))
    1
    """

    def __init__(self, faults: Sequence[str] | str) -> None:
        self.faults: tuple[str, ...] = (faults,) if isinstance(faults, str) else tuple(faults)
        if len(self.faults) == 1:
            super().__init__(self.faults[0])
        else:
            lines = "\n".join(f"  - {fault}" for fault in self.faults[:50])
            more = f"\n  … and {len(self.faults) - 50} more" if len(self.faults) > 50 else ""
            super().__init__(f"{len(self.faults)} faults:\n{lines}{more}")


class OptionError(ModelError):
    """An option, or a parameter of a model, with a value that it cannot have.

    Parameters
    ----------
    faults : everything that is wrong, one sentence each.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.datasets.asia().entropy("lung", base=0.5)
    ... except gg.OptionError as error:
    ...     print(error)
    the base of the logarithm must be greater than 1 (2 gives bits), not 0.5
    """


class ParseError(GramGraphError, ValueError):
    r"""A file that does not follow its format, with the place where reading stopped.

    Parameters
    ----------
    message : what was expected, and what came.
    source : the file.
    line, column : where, from 1.

    Examples
    --------
    >>> from gramgraph.io import bif
    >>> try:
    ...     bif.loads(b"network n { }\nvariable a { type }")
    ... except ParseError as error:
    ...     print(error.line)
    2
    """

    def __init__(self, message: str, *, source: str = "<text>", line: int | None = None, column: int | None = None):
        self.source, self.line, self.column = source, line, column
        place = source
        if line is not None:
            place += f":{line}" if column is None else f":{line}:{column}"
        super().__init__(f"{place}: {message}")
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return _parse_error, (self.message, self.source, self.line, self.column)


def _parse_error(message: str, source: str, line: int | None, column: int | None) -> ParseError:
    """A `ParseError` that came from another process."""
    return ParseError(message, source=source, line=line, column=column)


class BudgetError(GramGraphError, MemoryError):
    """A plan that would not fit in memory; nothing was allocated.

    Parameters
    ----------
    message : what does not fit.
    clique : the variables of the largest table.
    bytes : what it would take.
    remedies : what helps.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.models.ising_grid(9, 9).query("x0_0", engine="junction_tree", memory=1e3)
    ... except gg.BudgetError as error:
    ...     print(error.bytes > 1e3, len(error.remedies) > 0)
    True True
    """

    def __init__(self, message: str, *, clique: Sequence[str] = (), bytes: float = 0.0, remedies: Sequence[str] = ()):
        self.clique, self.bytes, self.remedies = tuple(clique), bytes, tuple(remedies)
        help_text = "".join(f"\n  - {remedy}" for remedy in self.remedies)
        super().__init__(message + (f"\nTry:{help_text}" if help_text else ""))
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return _budget_error, (self.message, self.clique, self.bytes, self.remedies)


def _budget_error(message: str, clique: Sequence[str], bytes: float, remedies: Sequence[str]) -> BudgetError:
    """A `BudgetError` that came from another process."""
    return BudgetError(message, clique=clique, bytes=bytes, remedies=remedies)


class ImpossibleEvidenceError(GramGraphError, ValueError):
    """Evidence of probability zero; `conflict` names a smallest set of observations that cannot hold together.

    Parameters
    ----------
    message : what cannot be.
    conflict : observed variables that cannot be together.

    Examples
    --------
    >>> import gramgraph as gg
    >>> try:
    ...     gg.datasets.asia().query("tub", {"lung": "yes", "either": "no"})
    ... except gg.ImpossibleEvidenceError as error:
    ...     print(sorted(error.conflict))
    ['either=no', 'lung=yes']
    """

    def __init__(self, message: str, *, conflict: Sequence[str] = ()):
        self.conflict = tuple(conflict)
        super().__init__(message)
