"""Where the observations are: all here, over the devices of one or many processes, or behind a function."""

from deepprox.spreading.contract import Here, Spread, same
from deepprox.spreading.devices import Devices
from deepprox.spreading.program import program
from deepprox.spreading.reducer import Reducer

__all__ = ["Devices", "Here", "Reducer", "Spread", "program", "same"]
