"""Tables as they come from files: read, judged column by column, and made numbers."""

from deepprox.tables.columns import Columns
from deepprox.tables.reading import read_table
from deepprox.tables.refusals import Refused, gathering, refuse
from deepprox.tables.response import Response, read_response

__all__ = ["Columns", "Refused", "Response", "gathering", "read_response", "read_table", "refuse"]
