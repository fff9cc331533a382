"""Do the two sides of a rule mean the same? Tried on random instances, or proven for all values."""
