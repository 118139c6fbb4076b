"""Numba: clauses over variables of two states, propagated, and summed over by search."""
