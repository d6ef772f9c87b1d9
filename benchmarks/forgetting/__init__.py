"""The parts of forget.py: `removal`, `tables` and `loo` beside retraining; `along`, `bounds` and `soak` on streams."""
