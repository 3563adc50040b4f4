"""The lambda family: RankNet, LambdaRank, LambdaMART, McRank, SPSA training and the local-optimality test."""
