"""Any JSON, in small."""

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3))
