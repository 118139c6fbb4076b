"""Exact answers about tables: trees of cliques, elimination, enumeration."""
