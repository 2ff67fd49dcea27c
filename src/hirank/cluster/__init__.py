"""Clustering of samples that lie near several subspaces, complete or not."""

from hirank.cluster.affinity import affinity_matrix
from hirank.cluster.self_expression import penalty_scale, sparse_self_expression
from hirank.cluster.ssc import SSC

__all__ = ["SSC", "affinity_matrix", "penalty_scale", "sparse_self_expression"]
