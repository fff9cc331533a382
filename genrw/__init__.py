"""genrw: GPU kernels written as rewrite rules."""
