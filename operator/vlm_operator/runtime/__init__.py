"""What runs the operator: watches, the work queue, cluster I/O, health and metrics. Decides nothing; asks the core."""
