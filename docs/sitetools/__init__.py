"""What makes pages of the site: reference, systems, benchmarks; and what checks the built one."""
