"""Solvers that know nothing of ranking: cutting planes, the working-set QP, assignment."""
