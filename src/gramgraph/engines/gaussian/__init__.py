"""Linear-Gaussian models: dense, sparse, tree, messages."""
