"""The door to questions and learning: models and conditionals call what stands above them through here.

Nothing else below these rooms imports them; each is loaded when it is first needed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["analyses", "ask", "learners"]


@cache
def ask() -> Any:
    """The functions that answer questions."""
    from gramgraph.questions import ask

    return ask


@cache
def analyses() -> Any:
    """The analyses that models offer as methods."""
    from gramgraph.analysis import of_models

    return of_models


@cache
def learners() -> Any:
    """The functions that learn models and conditionals from data."""
    from gramgraph.learn import from_models

    return from_models
