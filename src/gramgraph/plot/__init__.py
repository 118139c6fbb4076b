"""Pictures of answers, networks, junction trees and kernel machines; `network_svg` needs no further package."""

from gramgraph._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "chains": "plot_chains",
        "convergence": "plot_convergence",
        "decision": "plot_decision_regions",
        "detections": "plot_detections plot_features",
        "drawing": "network_dot",
        "gaussian": "plot_densities plot_gaussian plot_precision_graph",
        "gp": "plot_components plot_evidence plot_process",
        "grids": "plot_bound plot_images",
        "kernels": "plot_kernel plot_kernel_draws plot_kernel_pca",
        "losses": "plot_losses",
        "mixtures": "plot_mixture",
        "pag": "plot_pag",
        "pictures": "plot_beliefs plot_comparison plot_junction_tree plot_network",
        "real": "plot_density",
        "reliability": "plot_reliability",
        "rvm": "plot_rvc plot_rvr",
        "sequences": "plot_casino plot_forecast plot_particles plot_posteriors plot_states",
        "svg": "junction_tree_svg network_svg",
        "topics": "plot_topics",
        "trees": "plot_tree",
    },
)
