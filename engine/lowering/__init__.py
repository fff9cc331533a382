"""A program taken through its stages, one after the other."""
