"""Support vector machines: duals, where kernel rows come from, and many machines at once."""
