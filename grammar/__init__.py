"""Text to typed trees with spans and back: the languages `.gen` (programs) and `.rw` (operators, targets, rules)."""
