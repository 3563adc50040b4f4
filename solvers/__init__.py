"""Solvers that are independent of ranking: cutting planes, the working-set QP and the assignment problem."""

from structrank.solvers.cutting_plane import CuttingPlanes
from structrank.solvers.results import Certificate, Iteration, Plane, Result
from structrank.solvers.working_set import WorkingSet

__all__ = ["Certificate", "CuttingPlanes", "Iteration", "Plane", "Result", "WorkingSet"]
