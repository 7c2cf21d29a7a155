"""Measurements behind the claims: ``python -m benchmarks [name ...]`` prints each."""
