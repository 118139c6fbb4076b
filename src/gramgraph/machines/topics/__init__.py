"""Topic models of large collections: a collapsed Gibbs sampler, variational fits, and what is asked of held-out texts."""
