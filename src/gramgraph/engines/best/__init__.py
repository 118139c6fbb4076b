"""Best assignments: search, cuts, reweighted messages."""
