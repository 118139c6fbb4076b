"""Kernel graphical models: variables on cells, pairwise density ratios as tables, trees learned from samples."""
