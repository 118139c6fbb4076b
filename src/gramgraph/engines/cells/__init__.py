"""Messages on cells: engines for models whose variables are numbers, angles, categories or points."""
