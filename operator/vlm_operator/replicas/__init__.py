"""Facts about the replicas of a deployment, and the plan that brings them nearer to what is wanted.

Pure: the caller gathers the facts and carries out the plan.
"""
