"""What a model says about itself: information, sensitivity, messages one by one, the best decisions."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparison": "compare Comparison",
        "decisions": "Policy Strategy",
        "explanation": "Conflict conflict explain",
        "information": "entropy kl_divergence most_informative mutual_information",
    },
)
