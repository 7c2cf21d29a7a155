"""deepprox and what others use, on the same data in one run: ``python -m benchmarks.suites [name ...]``."""
