"""Text to typed trees and back: the languages `.gen` (programs) and `.rw` (operators, targets, rules)."""
