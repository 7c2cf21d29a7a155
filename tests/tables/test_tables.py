"""Tables become numbers in the open: every guess is tested, and what is no input is told by name."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.datasets as sm
from pyarrow import feather, parquet
from sklearn.base import clone
from sklearn.datasets import load_linnerud, load_wine
from sklearn.preprocessing import OneHotEncoder

from deepprox.streaming.sources import source_of
from deepprox.tables import Columns, Refused, read_response, read_table
from deepprox.tables.kinds import doubt


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "age": [30, 40, 50, 61],
            "colour": ["red", "blue", "red", "green"],
            "smokes": [True, False, True, False],
            "weight": [70.5, 80.0, 65.2, 90.1],
        }
    )


def test_numbers_stay_and_factors_are_one_hot(table):
    columns = Columns().fit(table)
    numbers = columns.transform(table)
    names = ["age", "colour=blue", "colour=green", "colour=red", "smokes", "weight"]
    assert [*numbers.columns] == names == [*columns.get_feature_names_out()]
    np.testing.assert_array_equal(numbers["age"], table["age"])
    np.testing.assert_array_equal(numbers["smokes"], [1, 0, 1, 0])
    theirs = OneHotEncoder(sparse_output=False).fit_transform(table[["colour"]])
    np.testing.assert_array_equal(numbers.iloc[:, 1:4], theirs)
    assert columns.groups_ == (0, 1, 1, 1, 2, 3)
    assert {*numbers.dtypes} == {np.dtype(float)}


def test_a_new_table_may_have_other_columns_and_another_order(table):
    columns = Columns().fit(table)
    other = table.assign(extra="x")[["extra", "weight", "smokes", "colour", "age"]]
    pd.testing.assert_frame_equal(columns.transform(other), columns.transform(table))
    with pytest.raises(ValueError, match="lacks the columns 'age', 'colour' of the fit"):
        columns.transform(table.drop(columns=["age", "colour"]))


def test_missing_values_are_a_choice(table):
    holes = table.assign(age=[30, None, 50, 61], colour=["red", None, "red", "green"])
    with pytest.raises(ValueError, match=r"'age' has 1 missing value, .* row 2: .*missing='mean'.*--missing"):
        Columns().fit(holes)
    numbers = Columns(missing="mean").fit_transform(holes)
    assert numbers.loc[1, "age"] == np.mean([30, 50, 61])
    np.testing.assert_array_equal(numbers["colour=(missing)"], [0, 1, 0, 0])
    complete = Columns(missing="mean").fit(table)
    assert complete.transform(holes.assign(colour="red")).loc[1, "age"] == table["age"].mean()
    with pytest.raises(ValueError, match="level '\\(missing\\)', which the fit did not see"):
        complete.transform(holes)


def test_unknown_levels_are_a_choice(table):
    new = table.assign(colour="violet")
    with pytest.raises(
        ValueError, match=r"'violet', which the fit did not see .*'red'.*unknown='ignore'.*--unknown"
    ):
        Columns().fit(table).transform(new)
    numbers = Columns(unknown="ignore").fit(table).transform(new)
    assert not numbers.filter(like="colour").to_numpy().any()


def test_numbers_can_be_a_factor_in_any_precision(table):
    columns = Columns(factors=["age"]).fit(table)
    assert [*columns.get_feature_names_out()][:4] == ["age=30", "age=40", "age=50", "age=61"]
    as_floats = columns.transform(table.astype({"age": float}))
    pd.testing.assert_frame_equal(as_floats, columns.transform(table))
    with pytest.raises(ValueError, match="no column 'size' to take as a factor"):
        Columns(factors=["size"]).fit(table)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pd.date_range("2026-01-01", periods=4), "dates or times, as in '2026-01-01"),
        (["2026-01-31", "2026-02-01", "2026-02-01", "2026-02-03"], "dates or times, as in '2026-01-31'"),
        (["31.01.26", "01.02.26", "01.02.26", "03.02.26"], "dates or times"),
        (["Jan 31, 2026", "Feb 1, 2026", "Feb 1, 2026", "Feb 3, 2026"], "dates or times"),
        (["12:00", "13:00", "13:00", "14:30:10"], "dates or times"),
        (pd.to_timedelta([1, 2, 3, 4], unit="h"), "holds timedelta64"),
        (["a7", "b3", "c1", "d9"], "4 different texts in 4 rows, as an identifier"),
        ([[1], [2], [3], [4]], "nested values"),
        ([None] * 4, "is empty"),
    ],
)
def test_what_is_no_input_is_refused(table, values, said):
    with pytest.raises(ValueError, match=rf"Column 'odd' .*{said}.*drop\(columns='odd'\).*--drop 'odd'"):
        Columns(missing="mean").fit(table.assign(odd=values))


@pytest.mark.parametrize(
    "name", ["id", "ID", "patient_id", "customerId", "Unnamed: 0", "row", "uuid", "Sample ID"]
)
def test_a_count_of_the_rows_is_refused_by_its_name(table, name):
    with pytest.raises(ValueError, match="counts the rows"):
        Columns().fit(table.assign(**{name: [11, 12, 13, 14]}))
    Columns().fit(table.assign(**{name: [3, 1, 4, 1]}))  # a code, not a count


def shuffled(n, start=0, step=1):
    return np.random.default_rng(0).permutation(n) * step + start


@pytest.mark.parametrize(
    "values",
    [
        shuffled(30),  # a count of the rows, shuffled
        shuffled(200, 10_000, 7),  # numbers of customers
        np.where(np.arange(200) == 7, np.nan, shuffled(200)),  # with a hole, so floats
        np.append(shuffled(199, 1), 5),  # one of them twice
    ],
)
def test_whole_numbers_that_chance_does_not_give_are_refused(values):
    rows = pd.DataFrame({"customer": values})
    with pytest.raises(
        ValueError, match=r"'customer' has \d+ different whole .*--drop 'customer', or keep it"
    ):
        Columns(missing="mean").fit(rows)
    kept = Columns(missing="mean", numbers=["customer"]).fit_transform(rows)["customer"]
    np.testing.assert_allclose(kept, rows["customer"].fillna(rows["customer"].mean()))


def test_codes_of_rows_are_refused_by_their_name():
    codes = pd.DataFrame({"customer_id": shuffled(30, 10**8, 10**6 + 7)})
    with pytest.raises(ValueError, match="'customer_id' has 30 different whole numbers in 30 rows"):
        Columns().fit(codes)
    Columns().fit(codes.rename(columns={"customer_id": "income"}))
    Columns(numbers=["customer_id"]).fit(codes)


def test_measurements_in_whole_numbers_are_no_identifiers():
    tables = [load().data for load in (sm.macrodata.load_pandas, sm.star98.load_pandas, sm.nile.load_pandas)]
    tables += [sm.sunspots.load_pandas().data, sm.longley.load_pandas().data, sm.copper.load_pandas().data]
    tables += [load_wine(as_frame=True).data, load_linnerud(as_frame=True).frame]
    for table in tables:
        Columns().fit(table)
    rng = np.random.default_rng(0)
    for span in (10, 100, 1000, 10_000, 100_000):
        Columns().fit(pd.DataFrame({"x": rng.integers(0, span, 300)}))
    Columns().fit(pd.DataFrame({"x": np.ones(300, int)}))


def test_a_count_in_order_is_noticed():
    years = pd.Series(np.arange(1900, 1960), name="year")
    assert "a different whole number in every row" in doubt(years)
    assert doubt(years % 7) is None and doubt(years * 1.5) is None and doubt(years[:10]) is None


def test_all_columns_are_told_at_once(table):
    odd = table.assign(when=["2026-01-01"] * 4, who=list("abcd"), age=[1, None, 3, 4])
    with pytest.raises(Refused) as caught:
        Columns().fit(odd)
    assert [sentence.split("'")[1] for sentence in caught.value.sentences] == ["age", "when", "who"]
    assert str(caught.value).startswith("The table is refused for 3 reasons:\nColumn 'age' has 1 missing")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(Refused) as caught:
        Columns().fit(table).transform(table.assign(colour="violet", weight=np.inf, age=None))
    assert len(caught.value.sentences) == 3
    with pytest.raises(Refused, match=r"for 30 reasons:(.|\n)*And 10 more") as caught:
        Columns().fit(pd.DataFrame(np.full((2, 30), np.nan)).add_prefix("x"))
    assert str(caught.value).count("\n") == 21


@pytest.mark.parametrize("name", ["acid", "grid", "humid", "year", "keyboard"])
def test_a_measurement_may_rise(table, name):
    Columns().fit(table.assign(**{name: [1, 2, 3, 4]}))


def test_a_stray_text_among_numbers_is_shown():
    rows = pd.DataFrame({"x": [*map(str, range(40)), "n.a."], "y": 1.0})
    with pytest.raises(ValueError, match=r"holds numbers, but also 'n.a.'"):
        Columns().fit(rows)
    with pytest.raises(ValueError, match="was numbers in the fit, but now is not"):
        Columns().fit(rows.assign(x=1.0)).transform(rows)
    with pytest.raises(ValueError, match="infinite value in row 2"):
        Columns().fit(rows.assign(x=[1.0, np.inf] + [0.0] * 39))


def test_true_and_false_with_holes():
    rows = pd.DataFrame({"x": pd.Series([True, None, False, True], dtype=object), "y": 1.0})
    np.testing.assert_allclose(Columns(missing="mean").fit_transform(rows)["x"], [1, 2 / 3, 0, 1])


def test_decimals_are_numbers():
    rows = pd.DataFrame({"x": pd.Series([Decimal("1.5"), Decimal("2"), Decimal("2")], dtype=object)})
    np.testing.assert_array_equal(Columns().fit_transform(rows)["x"], [1.5, 2, 2])


def test_it_is_a_transformer_of_scikit_learn(table):
    columns = clone(Columns(missing="mean", factors=("age",)))
    assert columns.get_params() == {
        "missing": "mean",
        "unknown": "error",
        "factors": ("age",),
        "numbers": (),
    }
    with pytest.raises(ValueError, match="missing must be one of 'error', 'mean', got 'median'"):
        Columns(missing="median").fit(table)


# The response


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([0, 1, 0], "classification"),
        (pd.Categorical(["a", "b", "a"]), "classification"),
        ([0.5, 1.0, 2.0], "regression"),
        ([*range(11)], "regression"),
    ],
)
def test_the_task_is_seen_in_the_response(values, task):
    assert read_response(pd.Series(values, name="y")).task == task


def test_the_task_can_be_asked_for():
    y = pd.Series([0, 1, 2], name="y")
    assert read_response(y, "regression").values.dtype == float
    assert read_response(y, "classification").values.dtype == y.dtype
    with pytest.raises(ValueError, match="is text, as in 'a', which no regression can take"):
        read_response(pd.Series(["a", "b"], name="y"), "regression")
    with pytest.raises(ValueError, match="response 'y' is missing in row 2"):
        read_response(pd.Series([1.0, None], name="y"))


# Files


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_every_kind_of_file_is_read(table, tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    if ending in ("parquet", "feather"):
        getattr(table, f"to_{ending}")(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    pd.testing.assert_frame_equal(read_table(str(path)), table, check_dtype=False)


def test_unreadable_files_are_told(table, tmp_path):
    with pytest.raises(ValueError, match=r"unknown kind '.xlsx': give a file that ends in one of .csv"):
        read_table("table.xlsx")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False, sep=";")
    with pytest.raises(ValueError, match="--separator"):
        read_table(str(path))
    assert read_table(str(path), ";").shape == table.shape
    path.write_bytes("größe\n1\n".encode("latin1"))
    with pytest.raises(ValueError, match="not text in UTF-8"):
        read_table(str(path))
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="has no rows"):
        read_table(str(path))
    path.write_text("")
    with pytest.raises(ValueError, match="is empty"):
        read_table(str(path))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_equal_and_missing_names_are_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    names, rows = ["a", "b", "a", "", "b", " "], [[1, 2, 3, 4, 5, 6]] * 2
    if ending in ("parquet", "feather"):
        arrays = [pa.array([row[k] for row in rows]) for k in range(6)]
        write = parquet.write_table if ending == "parquet" else feather.write_feather
        write(pa.table(arrays, names=names), path)
    else:
        sign = "\t" if ending == "tsv" else ","
        pd.DataFrame(rows, columns=names).to_csv(path, index=False, sep=sign)
    with pytest.raises(Refused) as caught:
        read_table(str(path))
    told = "no name for columns 4, 6", "2 columns named 'a'", "2 columns named 'b'"
    assert [part in sentence for part, sentence in zip(told, caught.value.sentences, strict=True)] == [
        True
    ] * 3


def test_columns_and_streams_want_names_too(table, tmp_path):
    with pytest.raises(Refused, match="2 columns named 'age'"):
        Columns().fit(table[["age", "age"]])
    (tmp_path / "t.csv").write_text("a,a,y\n1,2,3\n")
    with pytest.raises(Refused, match="2 columns named 'a'"):
        source_of(str(tmp_path / "t.csv"), "y", None)


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("\n\na,b\n1,2\n3,4\n", ["a", "b"], [1, 2]),
        ("\ufeffa,b\n1,2\n", ["a", "b"], [1, 2]),
        ('"a\nline",b\n1,2\n', ["a\nline", "b"], [1, 2]),
        ("a,b\n1,2,\n3,4,\n", ["a", "b"], [1, 2]),  # signs at the ends of rows, with nothing behind them
        ("1,2\n1,2\n", ["1", "2"], [1, 2]),
        ("NA,b\n1,2\n", ["NA", "b"], [1, 2]),
    ],
)
def test_first_lines_are_read_as_they_are(tmp_path, text, names, first):
    (tmp_path / "t.csv").write_text(text)
    found = read_table(str(tmp_path / "t.csv"))
    assert [*found.columns] == names and [*found.iloc[0]] == first


def test_cells_without_a_name_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    for text in (
        "a,b\n0,1,2\n1,3,4\n",
        "a,b\nx,1,2\ny,3,4\n",
    ):  # the first cells would be taken for row names
        path.write_text(text)
        with pytest.raises(ValueError, match="more cells than its first line has names"):
            read_table(str(path))
    path.write_text("a b\n1  2\n")
    assert read_table(str(path), r"\s+").to_numpy().tolist() == [[1, 2]]


def test_parts_of_a_text_are_its_rows(tmp_path):
    (tmp_path / "t.csv").write_text("a\n" + "".join(f"{k}\n" for k in range(7)))
    parts = [read_table(str(tmp_path / "t.csv"), part=(k, 3))["a"].tolist() for k in range(3)]
    assert parts == [[0, 3, 6], [1, 4], [2, 5]]


def test_a_folder_of_parquet_files_is_a_table(table, tmp_path):
    (tmp_path / "t.parquet").mkdir()
    table.to_parquet(tmp_path / "t.parquet" / "one.parquet")
    assert read_table(str(tmp_path / "t.parquet")).shape == table.shape


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.csv", b"a,b\n1,2\n3,4,5\n", "t.csv is no table: Expected 2 fields in line 3, saw 3."),
        ("t.csv", b'a,b\n1,"2\n', "t.csv is no table: EOF inside string starting at row 1."),
        ("t.csv.gz", b"\x1f\x8b" + bytes(99), "t.csv.gz is damaged: it cannot be unpacked"),
        ("t.parquet", b"PAR1" + bytes(99) + b"PAR1", "t.parquet is damaged or no Parquet file: "),
        ("t.feather", b"ARROW1" + bytes(99), "t.feather is damaged or no Feather file: "),
    ],
)
def test_damaged_files_are_told_by_their_name(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError) as caught:
        read_table(str(tmp_path / name))
    assert said in str(caught.value) and str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_pattern_that_is_none_is_told(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"'\(\(' is no sign and no pattern that separates columns: .*\."):
        read_table(str(tmp_path / "t.csv"), "((")


def test_arrow_is_an_extra(table, tmp_path, monkeypatch):
    table.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(pd, "read_parquet", lambda path: (_ for _ in ()).throw(ImportError("pyarrow")))
    with pytest.raises(ValueError, match=r"pip install 'deepprox\[arrow\]'"):
        read_table(str(tmp_path / "t.parquet"))


def test_numbers_are_read_to_the_last_digit(tmp_path):
    numbers = np.random.default_rng(0).normal(size=3000) * 10.0 ** np.arange(-150, 150).repeat(10)
    table = pd.DataFrame({"x": numbers, "y": numbers[::-1]})
    table.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(read_table(str(tmp_path / "t.csv")), table)
    batches = [*source_of(str(tmp_path / "t.csv"), "y", None).batches(1000)]
    np.testing.assert_array_equal(np.concatenate([batch[0] for batch in batches])[:, 0], numbers)
