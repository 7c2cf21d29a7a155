"""Tables that come with scikit-learn and statsmodels."""

from collections.abc import Callable

import numpy as np
from sklearn import datasets

from benchmarks.tables.record import Table, table_of


def of_sklearn(name: str, classes: bool) -> Callable[[], Table]:
    """A table of scikit-learn, as it is."""

    def load() -> Table:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return Table(name, "scikit-learn", X, y, classes)

    return load


def frame_of(name: str):
    """A data frame of statsmodels."""
    import statsmodels.datasets

    return getattr(statsmodels.datasets, name).load_pandas().data


def fair() -> Table:
    """Whether there were affairs, from what was said of the marriage."""
    data = frame_of("fair")
    for column in ("occupation", "occupation_husb"):
        data[column] = data[column].astype(int).astype(str)
    return table_of("fair", "statsmodels", data.assign(affairs=data.affairs > 0), "affairs", True)


def vote() -> Table:
    """Whom somebody voted for in 1996, without the party."""
    data = frame_of("anes96").drop(columns=["PID", "logpopul"])
    return table_of("vote", "statsmodels", data, "vote", True)


def party() -> Table:
    """With which of seven shades of parties somebody goes, without the vote."""
    data = frame_of("anes96").drop(columns=["vote", "logpopul"])
    return table_of("party", "statsmodels", data, "PID", True)


def star98() -> Table:
    """The share of pupils above the median in mathematics, without the products of inputs."""
    data = frame_of("star98")
    share = data.NABOVE / (data.NABOVE + data.NBELOW)
    plain = [c for c in data.columns if "_" not in c and c not in ("NABOVE", "NBELOW")]
    return table_of("star98", "statsmodels", data[plain].assign(share=share), "share", False)


def modechoice() -> Table:
    """How somebody travels, from what each way costs and takes."""
    data = frame_of("modechoice")
    wide = data.pivot(index="individual", columns="mode", values=["ttme", "invc", "invt", "gc"])
    wide.columns = [f"{what}_{int(mode)}" for what, mode in wide.columns]
    one = data.drop_duplicates("individual").set_index("individual")
    chosen = data[data.choice == 1].set_index("individual")["mode"]
    wide = wide.assign(income=one.hinc, party=one.psize, chosen=chosen)
    return table_of("modechoice", "statsmodels", wide, "chosen", True)


def randhie() -> Table:
    """Visits to a doctor, as ``log(1 + visits)``."""
    data = frame_of("randhie")
    return table_of("randhie", "statsmodels", data.assign(mdvis=np.log1p(data.mdvis)), "mdvis", False)


def grunfeld() -> Table:
    """The investments of eleven firms in twenty years."""
    return table_of("grunfeld", "statsmodels", frame_of("grunfeld"), "invest", False)


def ccard() -> Table:
    """What 72 people spent with a card, as a logarithm."""
    data = frame_of("ccard")
    return table_of("ccard", "statsmodels", data.assign(AVGEXP=np.log(data.AVGEXP)), "AVGEXP", False)


PACKAGED: dict[str, Callable[[], Table]] = {
    "iris": of_sklearn("iris", True),
    "wine": of_sklearn("wine", True),
    "breast_cancer": of_sklearn("breast_cancer", True),
    "digits": of_sklearn("digits", True),
    "diabetes": of_sklearn("diabetes", False),
    "fair": fair,
    "vote": vote,
    "party": party,
    "star98": star98,
    "modechoice": modechoice,
    "randhie": randhie,
    "grunfeld": grunfeld,
    "ccard": ccard,
}
