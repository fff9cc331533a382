"""Declarations gathered from rule files: operators, monoids, targets, rules, and the types of results."""
