"""Engines for plate models: parameters are integrated out, or have a factor of their own."""
