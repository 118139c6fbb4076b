"""Ratios against other libraries: `python -m benchmarks [module] [--quick] [--networks NAME …]`.

One module a capability; `harness.py` measures, `networks.py` brings models and cases into every library's own form.
"""
