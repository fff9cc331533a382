"""Checks of rules that run nothing: what is unreachable, superfluous, endless, misplaced or constant."""
