"""Solvers that know nothing of ranking: cutting planes, the working-set QP and the assignment problem."""

from structrank.solvers.cutting_plane import Certificate, CuttingPlanes, Plane
from structrank.solvers.working_set import WorkingSet

__all__ = ["Certificate", "CuttingPlanes", "Plane", "WorkingSet"]
