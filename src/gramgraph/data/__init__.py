"""Where counts come from: frames as coded columns, packed bits, contingency tables."""

from gramgraph.data.columns import CodedTable, code_table
from gramgraph.data.counts import Counts
from gramgraph.data.describe import column_kinds, describe
from gramgraph.data.discretize import Discretizer
from gramgraph.data.map_reduce import map_reduce
from gramgraph.data.moments import Moments, moments_of
from gramgraph.data.stream import stream_counts

__all__ = [
    "CodedTable",
    "Counts",
    "Discretizer",
    "Moments",
    "code_table",
    "column_kinds",
    "describe",
    "map_reduce",
    "moments_of",
    "stream_counts",
]
