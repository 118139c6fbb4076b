"""Solvers of the kernel machines: arrays and kernels in, solutions out; estimators check, store and delegate."""
