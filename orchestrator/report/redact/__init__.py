"""A copy of a run fit to send out: who and what was said replaced, what happened kept."""
