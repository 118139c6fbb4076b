"""Pictures of answers, networks, junction trees and kernel machines; `network_svg` needs no further package."""

from gramgraph.plot.decision import plot_decision_regions
from gramgraph.plot.kernels import plot_kernel, plot_kernel_draws, plot_kernel_pca
from gramgraph.plot.pictures import plot_beliefs, plot_junction_tree, plot_network
from gramgraph.plot.rvm import plot_rvc, plot_rvr
from gramgraph.plot.svg import junction_tree_svg, network_svg

__all__ = [
    "junction_tree_svg",
    "network_svg",
    "plot_beliefs",
    "plot_decision_regions",
    "plot_junction_tree",
    "plot_kernel",
    "plot_kernel_draws",
    "plot_kernel_pca",
    "plot_network",
    "plot_rvc",
    "plot_rvr",
]
