"""Compile, or load from the cache, what questions about discrete models need."""

from __future__ import annotations

__all__ = ["warmup"]


def warmup() -> None:
    """Ask a small network everything once."""
    import pandas as pd

    from gramgraph import datasets

    net = datasets.asia()
    net.query(None, {"smoke": "yes"})
    net.query(None, pd.DataFrame({"smoke": ["yes", "no"] * 20}))
    net.map_query({"smoke": "yes"})
    net.map_query(pd.DataFrame({"smoke": ["yes", "no"] * 20}))
    net.sample(10, {"smoke": "yes"}, random_state=0)
