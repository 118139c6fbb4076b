"""Topic models of large collections: a collapsed Gibbs sampler, variational fits, questions about held-out texts."""
