"""How many replicas a deployment needs, by what is seen of them: `decide` in `decide.py`.

Signals come in as values with the times at which they were taken; a decision goes out with every term by name. Nothing
here reads a metric, a clock or the cluster, or carries a decision out.
"""
