"""Functions of well-known extensions that are safe although they are not marked IMMUTABLE (decision 3.5), reviewed by hand.

They compute from their arguments; a setting or a dictionary that they look at besides is none of what a policy hides. Without
this list `id % 2` would be refused in a database with pg_trgm, whose operator `%` is STABLE, and `ST_Union(geom)` in one with
PostGIS. A name counts only for a function in C that the named extension owns (`policy/decide/function_rules.py`). Not here,
though harmless to the eye: what changes a setting (set_limit), makes secrets (gen_salt), reads planner's statistics
(ST_EstimatedExtent), runs SQL text (crosstab), reads pages (pageinspect) or counters (pg_stat_statements).
"""

from collections.abc import Mapping
from typing import Final

_NAMES: Final = {
    # the operators %, <%, %>, <<%, %>> and the old show_limit(): STABLE for they read pg_trgm.similarity_threshold and its kin
    "pg_trgm": """
        show_limit similarity_op strict_word_similarity_commutator_op strict_word_similarity_op word_similarity_commutator_op
        word_similarity_op
        """,
    # STABLE for the rules come from a dictionary of text search, which a superuser's file fills (ts_lexize is a built-in)
    "unaccent": "unaccent",
    # binary forms, STABLE for they follow client_encoding
    "citext": "citextsend",
    "hstore": "hstore_send",
    # aggregates and their parts: never marked, so VOLATILE, yet they gather their arguments only. ST_AsGeoJSON and ST_AsMVT write
    # a row as JSON or as a tile: STABLE as row_to_json is
    "postgis": """
        pgis_asflatgeobuf_finalfn pgis_asflatgeobuf_transfn pgis_asgeobuf_finalfn pgis_asgeobuf_transfn pgis_asmvt_combinefn
        pgis_asmvt_deserialfn pgis_asmvt_finalfn pgis_asmvt_serialfn pgis_asmvt_transfn pgis_geometry_accum_finalfn
        pgis_geometry_accum_transfn pgis_geometry_clusterintersecting_finalfn pgis_geometry_clusterwithin_finalfn
        pgis_geometry_collect_finalfn pgis_geometry_coverageunion_finalfn pgis_geometry_makeline_finalfn
        pgis_geometry_polygonize_finalfn pgis_geometry_union_finalfn pgis_geometry_union_parallel_combinefn
        pgis_geometry_union_parallel_deserialfn pgis_geometry_union_parallel_finalfn pgis_geometry_union_parallel_serialfn
        pgis_geometry_union_parallel_transfn st_accum st_asflatgeobuf st_asgeobuf st_asgeojson st_asgeojsonrow st_asmvt
        st_clusterintersecting st_clusterwithin st_collect st_coverageunion st_makeline st_memcollect st_memunion st_polygonize
        st_union
        """,
}

SAFE: Final[Mapping[str, frozenset[str]]] = {extension: frozenset(names.split()) for extension, names in _NAMES.items()}
"""Extension -> names of its functions and aggregates. Taken from the extensions' own SQL scripts (contrib of PostgreSQL 12 to 18,
PostGIS 2.5 to 3.5)."""

LANGUAGES: Final = frozenset({"c", "internal"})  # aggregates are of language internal
