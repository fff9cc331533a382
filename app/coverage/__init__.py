"""Which rules programs use: seen, kept, and reported."""
