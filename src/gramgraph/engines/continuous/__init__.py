"""Engines for models with real-valued variables, alone or mixed with discrete ones: one algorithm a file."""
