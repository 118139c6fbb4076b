"""Plate models: templates of networks in which some nodes repeat."""
