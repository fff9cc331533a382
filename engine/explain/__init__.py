"""Why a stage gave what it gave: chains of rewrites, and rules that did not fire."""
