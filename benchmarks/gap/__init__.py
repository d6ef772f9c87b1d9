"""The parts of gap_family.py: `fits` and `pieces` measure, each in a process of its own, which `jobs` starts."""
