"""A learner with simple experts beside it: `mixture` has the class, `fitting` the experts that are fitted in blocks."""
