"""Draws: weights, chains, tempering."""
