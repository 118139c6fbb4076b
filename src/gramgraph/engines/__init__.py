"""Inference engines: one algorithm per file, in rooms by kind; `registry` knows them by name."""

from typing import Any

from gramgraph._lazy import lazy_name
from gramgraph.engines.base import Engine, Run
from gramgraph.engines.registry import ENGINES, get_engine

__all__ = ["ENGINES", "Engine", "Run", "get_engine", "gibbs_rows"]


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, {"gibbs_rows": "sampling.gibbs_rows"}, name)
