"""The axes of the arrays that hold what lanes compute: one axis of length 1 where a value does not depend on it."""

GROUPS, LANES, STEPS, SHARE = range(4)
ONE = (1, 1, 1, 1)
