"""Rules to e-graph, stages, shapes, cost, extraction, provenance. Knows no operator by name."""
