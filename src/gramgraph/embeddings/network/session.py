"""A case under study in a model on cells: observations come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramgraph.data.frames import is_missing
from gramgraph.embeddings.network.reading import read
from gramgraph.exceptions import VariableError
from gramgraph.questions.session import PlainSession

__all__ = ["CellSession"]


class CellSession(PlainSession):
    """Beliefs of one case while its evidence changes; values may be points, and likelihoods functions.

    >>> import gramgraph as gg
    >>> case = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20}).session()
    >>> case.observe(a="x")
    >>> round(case.query("b")["b"].prob("u"), 2)
    1.0
    """

    def observe(self, evidence: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set observations; variables that are not named keep theirs. None forgets what was observed."""
        if evidence is not None and not isinstance(evidence, Mapping):
            raise VariableError(f"a session observes one case: a dict, or name=value, not {type(evidence).__name__}")
        news = {**(evidence or {}), **named}
        read(self._model, news).refuse_soft()  # type: ignore[arg-type]
        for name, value in news.items():
            self._given.pop(name, None)
            if not is_missing(value):
                self._given[name] = value
