"""What several benchmarks need: clocks, and tables."""
