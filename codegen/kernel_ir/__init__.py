"""Kernels between the last term and printed text: statements over variables, and the passes that make and change them."""
