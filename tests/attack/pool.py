"""Hostile values, each a line of Python in the namespace of ``arena``."""

ANYTHING = """
None
True
False
np.True_
0
-1
1
2
7
0.5
-0.5
1e-300
1e300
np.inf
-np.inf
np.nan
10**9
2**31
2**63
2**64
10**400
-(10**400)
""
"a"
"no"
"nan"
"1"
"auto"
"all"
"none"
"l1"
"mean"
"\\ud800"
"a\\0b"
"\\u202eabc"
"x" * 100_000
Word("l1")
Number(0.5)
b"l1"
bytearray(b"1")
1j
()
[]
{}
set()
{"a": 1}
(1, 2)
[0.5, np.nan]
[1, "a"]
("l1", "l1")
[[1.0]]
[[1], [1, 2]]
iter([3])
(i for i in [1, 2])
range(3)
range(10**9)
Endless()
Shy()
np.array(1.0)
np.array([1.0, 2.0])
np.array([])
np.array([[1.0]])
np.array(["a"])
np.array([None])
np.zeros((2, 3, 4))
np.broadcast_to(1.0, (10**5, 10**5))
np.float16(0.5)
np.int8(-1)
np.uint64(2**64 - 1)
np.longdouble(0.5)
np.str_("l1")
np.bytes_(b"a")
np.datetime64("2020-01-01")
np.datetime64("NaT")
np.timedelta64(3, "D")
np.ma.masked
np.ma.array([1.0, 2.0], mask=[True, False])
datetime.date(2020, 1, 1)
datetime.timedelta(3)
decimal.Decimal("0.1")
decimal.Decimal("sNaN")
fractions.Fraction(1, 3)
pd.NA
pd.NaT
pd.Series([0.5])
pd.DataFrame({"a": [1.0]})
pd.Timestamp("2020-01-01")
pd.Timedelta(3, "D")
pd.Period("2020", "Y")
pd.Interval(0, 1)
pd.Categorical(["a"])
sp.csr_array([[1.0]])
jnp.array(0.5)
jnp.array([1, 2])
jax.random.key(0)
np.random.default_rng(0)
np.random.RandomState(0)
object()
Ellipsis
NotImplemented
slice(3)
int
len
lambda *given: 0
lambda: 1 / 0
np
pathlib.Path(".")
pathlib.Path("absent") / "x"
penalties.L1(0.1)
penalties.L1
penalties.Mask(np.zeros((1, 1), bool))
losses.Softmax()
links.ReLU()
activities.ActivityL1(0.1)
(penalties.L1(0.1), None)
small("DeepRegressor")
matplotlib.figure.Figure()
"""

TABLES = """
X.tolist()
tuple(map(tuple, X))
[X[:, 0], X[:, 1]]
X[:, 0]
X[0, 0]
X[:, :, None]
X[:23]
X[:0]
X[:, :0]
X[:1]
np.empty((0, 0))
X.T
X[::-1]
np.asfortranarray(X)
X.astype(">f8")
X.astype(np.float16)
X.astype(np.longdouble)
X.astype(np.int8)
X.astype(bool)
(X > 0).astype(np.uint64) * (2**64 - 1)
X + 0j
X.astype(object)
X.astype(str)
X.astype(bytes)
np.where(X > 0, "a", X.astype(object))
np.where(X > 0, None, X.astype(object))
np.full((24, 2), None)
np.full((24, 2), object())
np.full((24, 2), 10**400, object)
np.full((24, 2), decimal.Decimal("0.1"), object)
np.full((24, 2), pd.NA, object)
np.full((24, 2), datetime.date(2020, 1, 1), object)
np.full((24, 2), "2020-01-01", "datetime64[D]")
np.full((24, 2), 3, "timedelta64[s]")
np.zeros((24, 2), [("a", float), ("b", int)])
np.zeros(24, [("a", float), ("b", int)])
np.ma.array(X, mask=X > 0)
np.ma.array(X, mask=True)
np.matrix(X)
np.broadcast_to(1.0, (24, 2))
np.broadcast_to(1.0, (24, 10**9))
np.broadcast_to(1.0, (10**10, 2))
X * np.inf
X * np.nan
np.where(X > 1, np.nan, X)
np.where(X > 1, np.inf, X)
np.zeros((24, 2))
np.full((24, 2), 1e308)
X * 1e300
X * 1e160
X * 1e-160
X * 1e-300
X * 5e-324
X + 1e17
X * np.array([1e150, 1e-150])
np.hstack([X, X, X])
np.hstack([X, 1e160 * X])
sp.csr_array(X)
sp.csc_matrix(X)
sp.coo_array(X)
sp.lil_array(X)
sp.dok_array(X)
sp.bsr_array(X)
sp.dia_array(X)
sp.csr_array(X + 0j)
sp.csr_array(X > 0)
sp.csr_array(np.where(X > 1, np.nan, X))
sp.csr_array((24, 2))
sp.csr_array((24, 10**8))
sp.coo_array((10**9, 2))
sp.coo_array((np.ones(4), ([0, 0, 1, 1], [0, 0, 1, 1])), shape=(24, 2))
sp.coo_array(([1.0], ([3],)), shape=(24,))
broken_rows("column")
broken_rows("negative")
broken_rows("pointer")
broken_rows("falling")
broken_rows("short")
pd.DataFrame(X)
table()
table().iloc[:23]
table().iloc[:0]
table(c="a")
table(c=None)
table(c=pd.NA)
table(c=1 + 2j)
table(c=pd.Timestamp("2020-01-01"))
table(c=pd.Timedelta(3, "D"))
table(c=pd.Period("2020", "Y"))
table(c=pd.Categorical(labels))
table(c=pd.Interval(0, 1))
table(c=pd.array([1, None] * 12, "Int64"))
table(c=pd.array([True, None] * 12, "boolean"))
table(c=pd.arrays.SparseArray([0.0, 1.0] * 12))
table(c=pd.array(["1", "2"] * 12, "string"))
table(c=pd.array([1.5, None] * 12, pd.ArrowDtype(pyarrow.float64())))
table(c=[[1, 2]] * 24)
table(c=decimal.Decimal("0.1"))
table(b=X[:, 1] * 1e200)
table().set_axis(["a", 3], axis=1)
table().set_axis([None, np.nan], axis=1)
table().set_axis(pd.Index(["a", "\\ud800"], dtype=object), axis=1)
table().set_axis([b"a", b"b"], axis=1)
table().set_axis(pd.MultiIndex.from_product([["a"], [1, 2]]), axis=1)
table().set_index(pd.DatetimeIndex(["2020-01-01"] * 24))
twice()
twice(labels[:, None][:, [0, 0]])
pyarrow.table({"a": X[:, 0], "b": X[:, 1]})
pyarrow.table([pyarrow.array(X[:, 0]), pyarrow.array(X[:, 1])], names=["a", "a"])
pyarrow.table({"a": labels, "b": labels})
xarray.DataArray(X)
jnp.asarray(X)
memoryview(X)
bytearray(24)
[[1.0, 2.0], [3.0]] * 12
[[1.0, "a"]] * 24
[{"a": 1.0, "b": 2.0}] * 24
{"a": X[:, 0], "b": X[:, 1]}
iter(X)
(row for row in X)
map(list, X)
[X] * 24
"absent.csv"
["a", "b"]
b"ab"
None
3
pd.Series(X[:, 0])
set(X[:, 0])
"""

COLUMNS = """
target.tolist()
tuple(target)
target[:, None]
target[:, None, None]
np.column_stack([target, target])
target[:23]
target[:0]
target[0]
np.full(24, target[0])
np.arange(24)
np.arange(24) % 3
ones * np.nan
ones * np.inf
np.where(X[:, 0] > 1, np.nan, X[:, 0])
X[:, 0] * 1e300
X[:, 0] * 1e160
X[:, 0] * 1e-300
X[:, 0] * 5e-324
X[:, 0] + 1e17
np.array([-1.0, 1.0] * 12)
np.array([True, False] * 12)
np.array([0, 1] * 12, np.int8)
np.array([0, 2**64 - 1] * 12, np.uint64)
np.array([0.0, 1.0] * 12, np.float16)
np.array([0, 1] * 12) + 0j
np.array(["a", "b"] * 12)
np.array(["1", "2"] * 12)
np.array([b"a", b"b"] * 12)
np.array(["", "a"] * 12)
np.array(["\\ud800", "a"] * 12)
np.array(["a", 1] * 12, object)
np.array(["a", None] * 12, object)
np.array([1, None] * 12, object)
np.array([1.5, "a"] * 12, object)
np.array([0, 1] * 12, object)
np.array([0, 10**400] * 12, object)
np.array([(1, 2)] * 24, "i,i")
np.array([decimal.Decimal("0.1"), decimal.Decimal("0.2")] * 12, object)
np.array([pd.NA, 1] * 12, object)
np.array([object(), object()] * 12, object)
np.array([np.nan, "a"] * 12, object)
np.array(["2020-01-01", "2020-01-02"] * 12, "datetime64[D]")
np.array([1, 2] * 12, "timedelta64[s]")
np.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 12, object)
np.ma.array(target, mask=X[:, 0] > 0)
np.matrix(X[:, 0])
np.broadcast_to(1.0, (24, 10**9))
np.broadcast_to(1.0, 10**10)
sp.csr_array(X[:, :1])
sp.csr_array(X[:, 0])
pd.Series(target)
pd.Series(target, index=pd.date_range("2020", periods=24))
pd.Series(pd.Categorical(labels))
pd.Series([0, None] * 12, dtype="Int64")
pd.Series(["a", None] * 12, dtype="string")
pd.Series([True, None] * 12, dtype="boolean")
pd.Series(pd.Timestamp("2020-01-01"), range(24))
pd.Series(pd.Timedelta(3, "D"), range(24))
pd.Series(pd.Interval(0, 1), range(24))
pd.Series([pd.NaT] * 24)
pd.Series([[1]] * 24)
pd.DataFrame({"a": target})
pd.DataFrame({"a": target, "b": target})
twice()
pd.array(target)
pd.Index(target)
pyarrow.array(target.tolist())
pyarrow.chunked_array([target.tolist()])
xarray.DataArray(X[:, 0])
jnp.asarray(X[:, 0])
[[1], [1, 2]] * 12
[[1], [2]] * 12
["a"] * 23 + [1]
iter(target)
(value for value in target)
{"a": 1}
set(target)
"y"
b"y"
None
0
1.5
np.nan
X
"""
