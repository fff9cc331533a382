"""Do rules, monoids and operators hold? What asks that compiles and runs kernels besides."""
