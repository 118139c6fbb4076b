"""Where counts come from: frames as coded columns, packed bits, contingency tables."""

from gramgraph.data.columns import CodedTable, code_table, column_kinds
from gramgraph.data.counts import Counts
from gramgraph.data.discretize import Discretizer
from gramgraph.data.stream import stream_counts

__all__ = ["CodedTable", "Counts", "Discretizer", "code_table", "column_kinds", "stream_counts"]
