"""What helps those who write rules: checks, lists, layout."""
