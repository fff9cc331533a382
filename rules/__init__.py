"""The rule files that ship with genrw; text only."""
