"""Programs cut into kernels: what a kernel can compute, what a plan costs, and the search for the cheapest one."""
