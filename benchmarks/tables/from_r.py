"""Tables of R's packages, where R and they are there: the data alone are read, no package is loaded."""

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.tables.record import Table, table_of

READ = """
arguments <- commandArgs(TRUE)
where <- Sys.glob(file.path(.libPaths(), arguments[1], "data", "Rdata.rdb"))
if (!length(where)) quit(status = 3)
there <- new.env()
invisible(lazyLoad(sub(".rdb$", "", where[1]), envir = there))
data <- get(arguments[2], there)
for (name in names(data)) if (!is.null(dim(data[[name]]))) data[[name]] <- NULL
write.csv(data, row.names = FALSE)
"""


class Place(NamedTuple):
    """A data frame of a package, its response, and columns that say the response in other words."""

    package: str
    data: str
    response: str
    classes: bool
    held: bool = False
    without: tuple[str, ...] = ()
    log: bool = False


PLACES: dict[str, Place] = {
    "attrition": Place("modeldata", "attrition", "Attrition", True),
    "credit": Place("modeldata", "credit_data", "Status", True),
    "concrete": Place("modeldata", "concrete", "compressive_strength", False),
    "ames": Place("modeldata", "ames", "Sale_Price", False, log=True),
    "biomass": Place("modeldata", "biomass", "HHV", False, without=("sample", "dataset")),
    "computing": Place("modeldata", "hpc_data", "class", True),
    "sacramento": Place("modeldata", "Sacramento", "price", False, without=("city", "zip"), log=True),
    "penguins": Place("modeldata", "penguins", "species", True, without=("island",)),
    "speech": Place("modeldata", "pd_speech", "class", True),
    "mroz": Place("carData", "Mroz", "lfp", True),
    "chile": Place("carData", "Chile", "vote", True),
    "salaries": Place("carData", "Salaries", "salary", False),
    "wages": Place("carData", "SLID", "wages", False, log=True),
    "crabs": Place("MASS", "crabs", "sp", True, without=("index",)),
    "birthwt": Place("MASS", "birthwt", "low", True, without=("bwt",)),
    "cpus": Place("MASS", "cpus", "perf", False, without=("name", "estperf"), log=True),
    "diamonds": Place("ggplot2", "diamonds", "price", False, log=True),
    "mpg": Place("ggplot2", "mpg", "hwy", False, without=("cty", "model", "trans")),
    "vote92": Place("pscl", "vote92", "vote", True),
    "thyroid": Place("mclust", "thyroid", "Diagnosis", True),
    "cells": Place("modeldata", "cells", "class", True, held=True, without=("case",)),
    "churn": Place("modeldata", "mlc_churn", "churn", True, held=True, without=("state",)),
    "alzheimer": Place("modeldata", "ad_data", "Class", True, held=True),
    "cars": Place("modeldata", "car_prices", "Price", False, held=True, log=True),
    "titanic": Place("earth", "etitanic", "survived", True, held=True),
    "olive": Place("dslabs", "olive", "area", True, held=True, without=("region",)),
    "glaucoma": Place("TH.data", "GlaucomaM", "Class", True, held=True),
    "meats": Place("modeldata", "meats", "fat", False, held=True, without=("water", "protein")),
    "moods": Place("psychTools", "epi.bfi", "bdi", False, held=True),
}


def frame_of(place: Place):
    """The data frame, or None where R or the package is not there."""
    import pandas as pd

    if shutil.which("Rscript") is None:
        return None
    # R_LIBS may name folders of packages that were only unpacked
    command = ["Rscript", "--vanilla", "-e", READ, place.package, place.data]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    if done.returncode == 3:
        return None
    if done.returncode:
        raise RuntimeError(f"R could not read {place.data} of {place.package}: {done.stderr.strip()}")
    return pd.read_csv(io.StringIO(done.stdout), keep_default_na=False, na_values=["NA"])


def of_r(name: str) -> Callable[[], Table | None]:
    """A table of an R package, or None."""

    def load() -> Table | None:
        import numpy as np

        place = PLACES[name]
        frame = frame_of(place)
        if frame is None:
            return None
        frame = frame.drop(columns=list(place.without))
        if place.log:
            frame[place.response] = np.log(frame[place.response])
        source = f"R {place.package}"
        return table_of(name, source, frame, place.response, place.classes, place.held)

    return load


FROM_R = {name: of_r(name) for name in PLACES}
