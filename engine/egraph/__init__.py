"""Rules on an e-graph: encoded for egglog, run to saturation, guards answered, the cheapest legal program extracted."""
