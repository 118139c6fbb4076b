"""The factor algebra: one protocol, one file per representation."""

from gramgraph.factors.base import Factor
from gramgraph.factors.gaussian import GaussianFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.factors.shared import SharedTables
from gramgraph.factors.table import TableFactor

__all__ = ["Factor", "GaussianFactor", "LogTable", "SharedTables", "TableFactor"]
