"""Boosting: rounds of weak learners, sorted or binned columns, trees of our own."""
