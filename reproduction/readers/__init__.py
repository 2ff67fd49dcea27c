"""Readers of the paper's data files: CMU motion capture and Hopkins155.

`load_mocap` and `load_hopkins` return the tables as the paper uses them; `read_amc` and `read_asf`
read any motion and skeleton. Files are found by path, or in the data folder (`files`).
"""

from reproduction.readers.asf_amc import Motion, read_amc, read_asf
from reproduction.readers.hopkins import Trajectories, load_hopkins
from reproduction.readers.mocap import load_mocap

__all__ = ["Motion", "Trajectories", "load_hopkins", "load_mocap", "read_amc", "read_asf"]
