"""Programs checked and timed on a device: suites, peers, and the fastest schedules."""
