"""Mixtures by expectation–maximization: `em` climbs, every family of components says how to expect and to maximize."""
