"""Training: from arrays to w.

In the order of the data flow: `data` (documents grouped by query), `sources` (where they come from), `shard` (the pass over a
block of queries), `risk` (R(w) and its planes), `run` (training for one C after another), `ramp` (the non-convex bound),
`health` (whether anything was learned), `history`, `checkpoint`, `rounds` (the loop of learners that train in rounds), and
`violation` (the most violated ranking of one query).
"""
