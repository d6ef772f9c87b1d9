"""From a decision value to a probability and a class.

`sigmoid` follows the probabilities, `threshold` the decision threshold, and `calibration` steps both with one example.
`recent` corrects probabilities by the last errors.
The folder imports from core only.
"""
