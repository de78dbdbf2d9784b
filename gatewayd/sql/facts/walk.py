"""The walk over one statement's tree: a stack of nodes with their scopes, and the facts found on the way (decisions 3.2, 3.3).

Allow-list by construction: a node without a handler that is not in grammar.EXPRESSIONS, or that carries a field the grammar table
does not name, is refused, and every relation-shaped thing below it counts as read and written. Handlers live in expressions.py,
queries.py, changes.py, definitions.py and alterations.py; they push what is to be walked and do not descend themselves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from gatewayd.catalog import WriteEvent
from gatewayd.sql.facts.grammar import EXPRESSIONS, NODES, Form
from gatewayd.sql.facts.kinds import part_words
from gatewayd.sql.facts.scope import QueryLevel, RangeItem, Scope
from gatewayd.sql.facts.statement import FunctionUse, OperatorUse, Site, TypeUse
from gatewayd.sql.text.parse import Node, NotParsed

MAX_RELATIONS: Final = 2_000
MAX_REFERENCES: Final = 20_000
MAX_QUERIES: Final = 2_000

NodeHandler = Callable[["Walk", Node, Scope], None]
GuardrailRule = Literal["block_unqualified_dml", "block_ddl", "block_dml", "refused"]
_Step = tuple[frozenset[str], NodeHandler | None, Form]


class Use:
    """A RelationUse in the making: locking clauses are known only later."""

    __slots__ = ("creates", "database", "events", "index", "name", "only", "position", "reads", "schema", "writes")

    def __init__(self, body: Node, *, reads: bool, writes: bool, creates: bool = False) -> None:
        self.database: str | None = body.get("catalogname")
        self.schema: str | None = body.get("schemaname")
        self.name: str = body.get("relname", "")
        self.position: int = body.get("location", 0)
        self.only = not body.get("inh", False)
        self.reads = reads
        self.writes = writes
        self.creates = creates
        self.events: tuple[WriteEvent, ...] | None = None
        self.index = -1  # its place among the relations, once all are known


class Watched(NamedTuple):
    """A call, an operator or a cast as it stands, for the binder. `operands` None: it is written in a form that does not tell."""

    kind: Literal["function", "operator", "cast", "type"]
    name: tuple[str | None, str]
    operands: tuple[Node | None, ...] | None
    scope: Scope | None


class Walk:
    """The facts of one statement while it is walked."""

    __slots__ = (
        "_steps",
        "creator",
        "defines",
        "explains",
        "fields",
        "functions",
        "items",
        "locked",
        "locks",
        "modifies",
        "names",
        "operators",
        "plain",
        "projections",
        "queries",
        "references",
        "relations",
        "setting",
        "sites",
        "stack",
        "stars",
        "top",
        "types",
        "unseen",
        "used",
        "watched",
    )

    def __init__(self, steps: Mapping[str, _Step]) -> None:
        self._steps = steps
        self.stack: list[tuple[str, Any, Scope]] = []
        self.relations: list[Use] = []
        self.functions: dict[tuple[object, ...], FunctionUse] = {}
        self.watched: list[Watched] | None = None  # filled where it is a list: what the binder asks for
        self.references = 0  # column references, stars among them
        self.items = 0  # of FROM clauses
        self.projections: dict[tuple[object, ...], tuple[list[Node], int, Scope]] = {}
        """By key of a function: the names and the scope of the selection that its call is where nothing is called so."""
        self.fields: list[
            tuple[list[Node], int, Scope | None]
        ] = []  # names of a selection, position, scope (None: of an expression)
        self.operators: dict[tuple[str | None, str], OperatorUse] = {}
        self.types: dict[tuple[str | None, str], TypeUse] = {}
        self.sites: list[Site] = []
        self.queries: dict[int, QueryLevel] = {}  # by id() of the statement's body
        self.locked: list[RangeItem | Node] = []  # items and query bodies under a locking clause
        self.locks = False
        self.modifies = False  # a data-modifying statement stands somewhere inside
        self.defines = False  # it creates, fills or changes a relation as such
        self.names: set[str] = set()  # every unqualified column name
        self.used: set[str] = set()  # last names of all that is more than a result column as it stands; "*" for stars
        self.plain: set[int] = set()  # id() of the ColumnRefs that are result columns as they stand
        self.top = 0  # id() of the body of a statement that is one SELECT
        self.stars: list[tuple[list[Node], Scope]] = []  # `*` and `x.*` as they stand in expressions and select lists
        self.unseen: set[int] = set()  # id() of plain SELECTs under EXISTS: their `*` shows nothing, and runs nothing
        self.creator = 0  # id() of the one SELECT that may hold INTO
        self.explains: Literal["no", "plan", "analyze"] = "no"
        self.setting: str | None = None

    def number_relations(self) -> None:
        """Put them in order of appearance."""
        self.relations.sort(key=lambda use: use.position)
        for index, use in enumerate(self.relations):
            use.index = index

    def run(self) -> None:
        """Walks the tree to its end without recursion: each node is allowed by its step, or refused."""
        stack, steps = self.stack, self._steps
        while stack:
            name, body, scope = stack.pop()
            step = steps.get(name)
            if step is None or not body.keys() <= step[0]:
                self.refuse_node(name, body)
            elif step[1] is not None:
                step[1](self, body, scope)
            else:
                self.push_children(step[2], body, scope)

    def push_children(self, form: Form, body: Node, scope: Scope) -> None:
        """Queues the children of a node that have a form."""
        stack = self.stack
        for field, kind in form.children:
            value = body.get(field)
            if value is None:
                continue
            if type(value) is list:
                for node in value:
                    for name, inner in node.items():
                        stack.append((name, inner, scope))
            elif kind:
                stack.append((kind, value, scope))
            else:
                for name, inner in value.items():
                    stack.append((name, inner, scope))

    def push_node(self, node: Node | None, scope: Scope) -> None:
        """Queues a node."""
        if node is not None:
            for name, inner in node.items():
                self.stack.append((name, inner, scope))

    def push_nodes(self, nodes: Iterable[Node] | None, scope: Scope) -> None:
        """Queues the nodes of a list."""
        if nodes is not None:
            for node in nodes:
                for name, inner in node.items():
                    self.stack.append((name, inner, scope))

    def site(self, rule: GuardrailRule, found: str, position: int) -> None:
        """Notes a place that a guardrail is about; `position` is a byte offset."""
        self.sites.append(Site(rule, found, position))

    def refuse(self, found: str, body: Node) -> None:
        """Notes a part that is refused whatever the policy says."""
        self.sites.append(Site("refused", found, body.get("location", -1)))

    def refuse_node(self, name: str, body: Any) -> None:
        """Deny a part that the walk does not know, and name what it may touch."""
        known = NODES.get(name)
        extra = sorted(body.keys() - known.known) if known is not None and isinstance(body, dict) else []
        self.sites.append(Site("refused", part_words(name, body if isinstance(body, dict) else {}, extra), -1))
        pending = [body]
        while pending:
            part = pending.pop()
            if isinstance(part, dict):
                if "relname" in part:
                    self.relations.append(Use(part, reads=True, writes=True))
                pending.extend(part.values())
            elif isinstance(part, list):
                pending.extend(part)

    def check(self, name: str, body: Node) -> None:
        """Hold a body that its handler reads itself against the grammar table."""
        if not body.keys() <= NODES[name].known:
            self.refuse_node(name, body)

    def use(self, relation: Node, *, reads: bool, writes: bool, creates: bool = False) -> Use:
        """Note a relation named by a RangeVar."""
        self.check("RangeVar", relation)
        if relation.get("relpersistence") == "t":
            self.refuse(f"temporary relation {relation.get('relname', '')}", relation)
        schema = relation.get("schemaname")
        if schema is not None:
            self.check_schema(schema, relation)
        use = Use(relation, reads=reads, writes=writes, creates=creates)
        self.relations.append(use)
        _bound(len(self.relations), MAX_RELATIONS, "tables")
        return use

    def refer(self) -> None:
        """Note one column reference."""
        self.references += 1
        _bound(self.references, MAX_REFERENCES, "column references")

    def range_item(self) -> None:
        """Note one item of a FROM clause, a join among them."""
        self.items += 1
        _bound(self.items, MAX_RELATIONS, "tables, joins, subqueries and functions in FROM")

    def query(self, query: QueryLevel) -> None:
        """Note a SELECT, or a row write, by its body."""
        self.queries[id(query.body)] = query
        _bound(len(self.queries), MAX_QUERIES, "queries inside each other or beside each other")

    def check_schema(self, schema: str, body: Node) -> None:
        """Temporary schemas outlive the statement in a pooled connection."""
        if schema.startswith(("pg_temp", "pg_toast_temp")):
            self.refuse(f"temporary schema {schema}", body)

    def qualified(self, names: list[Node], body: Node) -> tuple[str | None, str]:
        """Schema and name out of a list of strings. A database part must be the connected one, or PostgreSQL refuses it."""
        try:
            words = [name["String"].get("sval", "") for name in names]
        except KeyError:
            words = []
        if not 1 <= len(words) <= 3:
            self.refuse("a name with an unknown form", body)
            return None, ".".join(words)
        if len(words) == 1:
            return None, words[0]
        self.check_schema(words[-2], body)
        return words[-2], words[-1]

    def call(
        self,
        names: list[Node],
        arguments: int,
        body: Node,
        *,
        trigger: bool = False,
        constant: str | None = None,
        operands: tuple[Node, ...] | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Notes a call of a function with so many arguments."""
        schema, name = self.qualified(names, body)
        if self.watched is not None:
            self.watched.append(Watched("function", (schema, name), operands, scope))
        self._call(FunctionUse(schema, name, arguments, body.get("location", 0), trigger, constant))

    def call_or_column(self, name: str, item: list[Node], body: Node, scope: Scope) -> None:
        """`name(item)`, which is the item's column where no function of that name takes it (ParseFuncOrColumn)."""
        if self.watched is not None:
            self.watched.append(Watched("function", (None, name), tuple(body["args"]), scope))
        key = (None, name, 1, *(part["String"].get("sval", "") for part in item), id(scope))
        if key not in self.functions:
            position = body.get("location", 0)
            self.functions[key] = FunctionUse(None, name, 1, position)
            self.projections[key] = [*item, {"String": {"sval": name}}], position, scope

    def call_of_older_servers(self, name: str, since: int, body: Node) -> None:
        """Words that are grammar to the parser and to servers since that version; an older one looks up a function."""
        if self.watched is not None:
            self.watched.append(Watched("function", (None, name), None, None))
        self._call(FunctionUse(None, name, -1, body.get("location", 0), grammar_since=since))

    def _call(self, use: FunctionUse) -> None:
        self.functions.setdefault((use.schema, use.name, use.arguments, use.trigger, use.constant, use.grammar_since), use)

    def type_use(self, names: list[Node], body: Node) -> None:
        """Notes a type that is named."""
        schema, name = self.qualified(names, body)
        key = (schema, name)
        if self.watched is not None:
            self.watched.append(Watched("type", key, None, None))
        if key not in self.types:
            self.types[key] = TypeUse(schema, name, body.get("location", 0))

    def operator(
        self,
        schema: str | None,
        name: str,
        position: int,
        operands: Sequence[tuple[Node | None, ...]] = (),
        scope: Scope | None = None,
    ) -> None:
        """Note an operator. `operands`: the left one (None for a prefix operator) and the right one, for each of its uses here;
        none where the form does not tell."""
        key = (schema, name)
        if self.watched is not None:
            uses: Sequence[tuple[Node | None, ...] | None] = operands or (None,)
            self.watched += [Watched("operator", key, each, scope) for each in uses]
        if key not in self.operators:
            self.operators[key] = OperatorUse(schema, name, position)


def _bound(count: int, limit: int, what: str) -> None:
    """What deciding a statement costs follows these counts, so each has its bound. Raises NotParsed."""
    if count > limit:
        raise NotParsed(f"the statement has more than {limit} {what}; send it in several smaller ones")


def steps(handlers: Mapping[str, NodeHandler]) -> dict[str, _Step]:
    """The dispatch: what is neither an expression nor has a handler is left out, and so refused."""
    found: dict[str, _Step] = {name: (form.known, None, form) for name, form in EXPRESSIONS.items()}
    for name, handler in handlers.items():
        found[name] = (NODES[name].known, handler, NODES[name])
    return found
