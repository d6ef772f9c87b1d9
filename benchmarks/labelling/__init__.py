"""The parts of active.py: start in `policies`, which compares ways of choosing questions; `sets` has the data."""
