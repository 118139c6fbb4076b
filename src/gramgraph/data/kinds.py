"""What a column is taken for: one rule for frames, files and streams, for `fit`, structures and classifiers.

* Labels, truth values and categoricals are categories. Texts that are all numbers count as numbers (007 is a label).
* Whole numbers with up to `MAX_INTEGER_STATES` different values are categories, other numbers are real.
* Dates and times are dates; columns with a label of their own in nearly every row, and whole numbers that run as a
  counter, are identifiers. Both are told from the first `HEAD` rows. Learning a structure leaves them out, unless they
  are asked for; elsewhere an identifier counts as the labels or numbers that it holds, a date as labels.
"""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray

#: A column of whole numbers with at most this many distinct values counts as a category.
MAX_INTEGER_STATES = 20
#: Rows in which identifiers and dates are looked for.
HEAD = 10_000
#: Labels are an identifier where more than this share of them occur once.
UNIQUE = 0.9

_NUMBER = re.compile(r"\s*[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*")
_DATE = re.compile(
    r"\s*(?:\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?\s*"
)


@dataclass(frozen=True)
class Kind:
    """`kind` is category, ordered, integer (whole numbers as categories), real, date or empty; `why` in words."""

    kind: str
    why: str
    labels: Sequence[Any] = field(default=())  # states in their order
    identifier: str = ""  # why the column looks like one

    @property
    def taken_as(self) -> str:
        """One word for users."""
        if self.identifier:
            return "identifier"
        return "category" if self.kind == "integer" else self.kind

    @property
    def reason(self) -> str:
        """`why`, and what follows for structures."""
        if self.identifier or self.kind == "date":
            return f"{self.identifier or self.why}; left out of structure learning unless keep= names it"
        return self.why


def kind_of(column: Any, values: Sequence[Any] | None = None) -> Kind:
    """What a pandas column is taken for; `values` are its different labels, where they are known."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        labels = column.cat.categories.tolist()
        if column.cat.ordered:
            return Kind("ordered", f"an ordered categorical with {len(labels)} states", labels)
        own = _label_for_each(column, len(labels))
        return Kind("category", f"a categorical with {len(labels)} states", labels, own)
    if getattr(column.dtype, "kind", "O") in "Mm" or isinstance(column.dtype, pd.PeriodDtype):
        return Kind("date", "dates or times")
    if getattr(column.dtype, "kind", "O") in "iuf":
        return _of_numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if values is None:
        values = different_values(column)
    if not values:
        return Kind("empty", "nothing but missing cells")
    if all(map(_is_number, values)):
        return _of_numbers(as_numbers(column))
    if all(isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64)) for value in values):
        return Kind("date", "dates or times")
    found = texts_kind(values)
    if found.kind in ("integer", "real"):
        return Kind(found.kind, found.why, found.labels, _counter(as_numbers(column.iloc[:HEAD])))
    if found.kind == "date":
        return found
    return Kind(found.kind, found.why, found.labels, _label_for_each(column, len(values)))


def different_values(column: Any) -> list[Any]:
    """The labels of a pandas column, in order of appearance, without gaps."""
    try:
        found = column.unique()  # few: gaps are looked for among these
    except TypeError:
        raise VariableError(
            f"column {column.name!r} holds values that cannot be states (lists, sets or dicts)"
        ) from None
    import pandas as pd

    return list(found[~pd.isna(found)].tolist())


def texts_kind(values: Sequence[Any]) -> Kind:
    """What a column with these different labels is taken for, where they are texts or of several kinds."""
    texts = all(isinstance(value, str) for value in values)
    if all(isinstance(value, (bool, np.bool_)) for value in values) or (texts and set(values) <= {"True", "False"}):
        return Kind("category", "truth values", sorted(values))
    if texts and all(map(_NUMBER.fullmatch, values)):
        return _by_values(np.array(values, np.float64), list(values))
    if texts and all(map(_DATE.fullmatch, values)):
        return Kind("date", "dates or times")
    count = f"{len(values)} different labels" if len(values) > 1 else "one label only: no edge can be learned at it"
    return Kind("category", count, sorted_labels(values))


def whole_numbers(labels: Sequence[Any]) -> list[int] | None:
    """Texts as whole numbers where some have a point (1.0, as files write them beside gaps); None where none has, or
    two would become one."""
    if not any(isinstance(label, str) and label.endswith((".0", ".")) for label in labels):
        return None
    if texts_kind(labels).kind != "integer":
        return None
    found = [int(float(label)) for label in labels]
    return found if len(set(found)) == len(found) else None


def is_real(column: Any) -> bool:
    """Whether `kind_of` calls a pandas column real; most columns tell without a look at all cells."""
    import pandas as pd

    kind = getattr(column.dtype, "kind", "O")
    if isinstance(column.dtype, (pd.CategoricalDtype, pd.PeriodDtype)) or kind in "bMm":
        return False
    if kind in "iuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) if kind == "f" else column.to_numpy()
        return _many_or_fractions(values)
    shown = _first_shown(column)
    if isinstance(shown, str) and not _NUMBER.fullmatch(shown):
        return False
    return kind_of(column).kind == "real"


def as_numbers(column: Any) -> FloatArray:
    """The cells of a column as numbers, NaN where they are missing; dates as days since 1970."""
    import pandas as pd

    kind = getattr(column.dtype, "kind", "O")
    if kind == "m":
        return np.asarray(column.dt.total_seconds() / 86_400.0, np.float64)
    if kind == "M" or isinstance(column.dtype, pd.PeriodDtype) or kind_of_dates(column):
        if isinstance(column.dtype, pd.PeriodDtype):
            column = column.dt.to_timestamp()
        days = pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC")
        return np.asarray(days.dt.total_seconds() / 86_400.0, np.float64)
    if kind in "iufb":
        return np.ascontiguousarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.ascontiguousarray(pd.to_numeric(column.astype(object)).to_numpy(dtype=np.float64, na_value=np.nan))


def kind_of_dates(column: Any) -> bool:
    """Whether the first cell of a column of objects is a date."""
    shown = _first_shown(column)
    return isinstance(shown, datetime.date) or (isinstance(shown, str) and _DATE.fullmatch(shown) is not None)


def _first_shown(column: Any) -> Any:
    """The first cell that is not missing, mostly without a look at all of them; None where there is none."""
    begin, end = 0, 100
    while begin < len(column):
        shown = column.iloc[begin:end].dropna()
        if len(shown):
            return shown.iloc[0]
        begin, end = end, 10 * end
    return None


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    """Labels in the order of states: as texts, but as numbers where all of them are (texts of) numbers.

    A column of whole numbers has the same states in memory and in a CSV file, whose cells are texts.

    >>> sorted_labels(["10", "9", "-1"]), sorted_labels(["10", "9", "x"])
    (['-1', '9', '10'], ['10', '9', 'x'])
    """
    try:
        values = [float(label) for label in labels]
    except (TypeError, ValueError, OverflowError):
        return sorted(labels, key=str)
    if not np.isfinite(values).all():
        return sorted(labels, key=str)
    order = sorted(range(len(labels)), key=lambda i: (values[i], str(labels[i])))
    return [labels[i] for i in order]


# ------------------------------------------------------------------------------------------------- numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.number, Decimal)) and not isinstance(value, (bool, np.bool_))


def _of_numbers(values: FloatArray) -> Kind:
    shown = values[~np.isnan(values)]
    if not len(shown):
        return Kind("empty", "nothing but missing cells")
    distinct = shown if _many_or_fractions(shown) else np.unique(shown)
    labels = [int(value) for value in distinct[: MAX_INTEGER_STATES + 1]] if not _fractions(shown) else []
    found = _by_values(distinct, labels)
    return Kind(found.kind, found.why, found.labels, _counter(values[:HEAD]))


def _by_values(values: FloatArray, labels: Sequence[Any]) -> Kind:
    """From the different values of a column of numbers."""
    if _fractions(values):
        return Kind("real", "numbers with fractions")
    if len(values) > MAX_INTEGER_STATES:
        return Kind("real", f"whole numbers, more than {MAX_INTEGER_STATES} different ones")
    why = f"whole numbers, {len(values)} different ones (up to {MAX_INTEGER_STATES} are categories)"
    if len(values) == 1:
        why = "one number only: no edge can be learned at it"
    return Kind("integer", why, sorted_labels(labels))


def _many_or_fractions(values: Any) -> bool:
    """Whether there are fractions, or more different whole numbers than categories may be."""
    import pandas as pd

    values = np.asarray(values)
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if _fractions(values):
            return True
    if len(np.unique(values[:HEAD])) > MAX_INTEGER_STATES:
        return True
    return len(pd.unique(values)) > MAX_INTEGER_STATES


def _fractions(values: FloatArray) -> bool:
    return bool((values != np.round(values)).any() or np.isinf(values).any())


# ------------------------------------------------------------------------------------------------- identifiers


def _counter(head: FloatArray) -> str:
    """Why the numbers of the first rows look like a counter: whole, all different, and either close together or in a
    straight line with the rows. Measurements that happen to differ are neither."""
    shown = head[~np.isnan(head)]
    if len(shown) <= MAX_INTEGER_STATES or _fractions(shown) or len(np.unique(shown)) < len(shown):
        return ""
    steps = np.diff(shown)
    straight = (steps > 0).all() or (steps < 0).all()
    straight = straight and np.corrcoef(np.arange(len(shown)), shown - shown[0])[0, 1] ** 2 > 0.99
    if straight or np.ptp(shown) < 2 * len(shown):
        return "an identifier or counter: a whole number of its own in every row"
    return ""


def _label_for_each(column: Any, different: int) -> str:
    """Why labels, of which there are so many different ones, look like names of rows."""
    if different <= UNIQUE * MAX_INTEGER_STATES:  # too few for the rows below
        return ""
    shown = column.iloc[:HEAD].dropna()
    if len(shown) <= MAX_INTEGER_STATES or shown.nunique() <= UNIQUE * len(shown):
        return ""
    return "an identifier: a label of its own in nearly every row"
