"""What editors ask about programs and rules, and the language server that answers them."""
