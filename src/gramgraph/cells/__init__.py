"""What variables without a family of distributions stand on: cells with hat functions, and the density inside them."""
