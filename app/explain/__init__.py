"""What genrw shows of a lowering: stages, schedules, rewrites, a page to look at."""
