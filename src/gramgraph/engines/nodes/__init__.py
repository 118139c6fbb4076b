"""Quadrature on nodes: real-valued variables as points with weights, refined where the posterior is."""
