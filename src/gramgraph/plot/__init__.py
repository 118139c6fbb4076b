"""Pictures of answers, networks and junction trees; `network_svg` needs nothing beyond this package."""

from gramgraph.plot.pictures import plot_beliefs, plot_junction_tree, plot_network
from gramgraph.plot.svg import junction_tree_svg, network_svg

__all__ = ["junction_tree_svg", "network_svg", "plot_beliefs", "plot_junction_tree", "plot_network"]
