"""Pictures of answers, networks, junction trees and kernel machines; `network_svg` needs no further package."""

from gramgraph.plot.chains import plot_chains
from gramgraph.plot.convergence import plot_convergence
from gramgraph.plot.decision import plot_decision_regions
from gramgraph.plot.detections import plot_detections, plot_features
from gramgraph.plot.drawing import network_dot
from gramgraph.plot.gaussian import plot_densities, plot_gaussian, plot_precision_graph
from gramgraph.plot.gp import plot_components, plot_evidence, plot_process
from gramgraph.plot.grids import plot_bound, plot_images
from gramgraph.plot.kernels import plot_kernel, plot_kernel_draws, plot_kernel_pca
from gramgraph.plot.losses import plot_losses
from gramgraph.plot.mixtures import plot_mixture
from gramgraph.plot.pag import plot_pag
from gramgraph.plot.pictures import plot_beliefs, plot_comparison, plot_junction_tree, plot_network
from gramgraph.plot.real import plot_density
from gramgraph.plot.reliability import plot_reliability
from gramgraph.plot.rvm import plot_rvc, plot_rvr
from gramgraph.plot.sequences import plot_casino, plot_forecast, plot_particles, plot_posteriors, plot_states
from gramgraph.plot.svg import junction_tree_svg, network_svg
from gramgraph.plot.topics import plot_topics
from gramgraph.plot.trees import plot_tree

__all__ = [
    "junction_tree_svg",
    "network_dot",
    "network_svg",
    "plot_beliefs",
    "plot_bound",
    "plot_casino",
    "plot_chains",
    "plot_comparison",
    "plot_components",
    "plot_convergence",
    "plot_decision_regions",
    "plot_densities",
    "plot_density",
    "plot_detections",
    "plot_evidence",
    "plot_features",
    "plot_forecast",
    "plot_gaussian",
    "plot_images",
    "plot_junction_tree",
    "plot_kernel",
    "plot_kernel_draws",
    "plot_kernel_pca",
    "plot_losses",
    "plot_mixture",
    "plot_network",
    "plot_pag",
    "plot_particles",
    "plot_posteriors",
    "plot_precision_graph",
    "plot_process",
    "plot_reliability",
    "plot_rvc",
    "plot_rvr",
    "plot_states",
    "plot_topics",
    "plot_tree",
]
