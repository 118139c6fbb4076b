"""What models call to say something about themselves: one name for each of their methods."""

from gramgraph._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    "gramgraph.analysis",
    {
        "decisions": "solve_decisions value_of_information",
        "explanation": "conflict explain",
        "gaussian": "partial_correlations to_gaussian",
        "information": "entropy most_informative mutual_information",
        "messages": "max_sum sum_product",
        "sensitivity": "sensitivity sensitivity_function",
    },
)
