"""Inference engines: one algorithm a file."""

from gramgraph.engines.ask import plan, warmup
from gramgraph.engines.registry import ENGINES, get_engine

__all__ = ["ENGINES", "get_engine", "plan", "warmup"]
