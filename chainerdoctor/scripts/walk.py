"""One file's walk: every expression is given a value, every call is recorded with where and under what it stands."""

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.scripts.expressions import Expressions, element
from chainerdoctor.scripts.values import Class, Function, Module, RawSetting, Value, union

#: How an import of a module is turned into a value: absolute name → value.
Importer = Callable[[str], Value]

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: What stands under ``try`` with handlers runs "perhaps".
_TRY = ("n", "try")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Walker(Expressions):
    """Walks a module: its own statements first, then its functions, which see the module's final names."""

    def __init__(self, module: Module, importer: Importer) -> None:
        super().__init__(module)
        self.importer = importer
        self.waiting: List[Tuple[Function, List[Dict[str, Value]]]] = []
        self.owner: Optional[Class] = None

    def walk(self, tree: ast.Module) -> None:
        """Fill the module."""
        self.block(tree.body)
        while self.waiting:
            function, scopes = self.waiting.pop(0)
            self._body(function, scopes)

    def _body(self, function: Function, scopes: List[Dict[str, Value]]) -> None:
        env: Dict[str, Value] = {name: ("p", function, name) for name in function.parameters}
        if function.owner is not None and function.parameters and not function.static:
            env[function.parameters[0]] = ("i", function.owner, None)
        self.function, self.scopes = function, [*scopes, env]
        self.guards, self.contexts, self.loops = (), (), ()
        if isinstance(function.node, ast.Lambda):
            function.returns.append(self.value(function.node.body))
        else:
            self.block(function.node.body)

    # Statements

    def block(self, statements: List[ast.stmt]) -> None:
        """A sequence of statements. After ``if x: return`` the rest runs under "not x"."""
        before = self.guards
        for statement in statements:
            step = _STATEMENTS.get(type(statement))
            if step is None and hasattr(statement, "cases"):
                self.on_match(statement)
            elif step is None:
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.expr):
                        self.value(child)
            else:
                step(self, statement)
        self.guards = before

    def branches(self, parts: List[Callable[[], None]]) -> None:
        """Alternative ways: names that they set differently may be either afterwards."""
        env = self.scopes[-1]
        start = dict(env)
        ends = []
        for part in parts:
            env.clear()
            env.update(start)
            part()
            ends.append(dict(env))
        env.clear()
        for name in dict.fromkeys(name for end in ends for name in end):
            # A name that only one way sets has, for who reads it later, that value.
            env[name] = union([end[name] for end in ends if name in end])

    def on_if(self, node: ast.If) -> None:
        test = self.value(node.test)
        before = self.guards

        def then() -> None:
            self.guards = (*before, test)
            self.block(node.body)

        def otherwise() -> None:
            self.guards = (*before, ("x", "not", (test,)))
            self.block(node.orelse)

        if _ends(node.body) and not node.orelse:
            env = self.scopes[-1]
            saved = dict(env)
            then()
            env.clear()
            env.update(saved)
            self.guards = (*before, ("x", "not", (test,)))
            return
        if node.orelse and _ends(node.orelse):
            then_env = self.scopes[-1]
            saved = dict(then_env)
            otherwise()
            then_env.clear()
            then_env.update(saved)
            then()
            self.guards = (*before, test)
            return
        self.branches([then, otherwise])
        self.guards = before

    def on_match(self, node: Any) -> None:
        self.value(node.subject)
        self.branches([lambda case=case: self.block(case.body) for case in node.cases])  # type: ignore[misc]

    def on_for(self, node: Any) -> None:
        self.assign(node.target, ("s", self.value(node.iter), None))
        self._loop(node)

    def on_while(self, node: ast.While) -> None:
        self.value(node.test)
        self._loop(node)

    def _loop(self, node: Any) -> None:
        before = self.loops
        self.loops = (*before, node.lineno)
        self.branches([lambda: self.block(node.body), lambda: None])
        self.loops = before
        self.block(node.orelse)

    def on_with(self, node: Any) -> None:
        before = self.contexts
        for item in node.items:
            value = self.value(item.context_expr)
            self.contexts = (*self.contexts, value)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        self.block(node.body)
        self.contexts = before

    def on_try(self, node: Any) -> None:
        def handled(handler: ast.ExceptHandler) -> Callable[[], None]:
            def run() -> None:
                if handler.type is not None:
                    self.value(handler.type)
                self.block(handler.body)

            return run

        def attempt() -> None:
            before = self.guards
            if node.handlers:
                self.guards = (*before, _TRY)
            self.block(node.body)
            self.guards = before
            self.block(node.orelse)

        self.branches([attempt, *[handled(h) for h in node.handlers]])
        self.block(node.finalbody)

    def on_assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def on_annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def on_augmented(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        if isinstance(node.target, ast.Name):
            self.keep(node, node.target, node.value)
            self.scopes[-1][node.target.id] = None
        else:
            self.value(node.target)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Give a name, attribute, item or sequence of them a value."""
        kind = type(target)
        if kind is ast.Name:
            self.scopes[-1][target.id] = value  # type: ignore[attr-defined]
        elif kind is ast.Tuple or kind is ast.List:
            for index, each in enumerate(target.elts):  # type: ignore[attr-defined]
                if isinstance(each, ast.Starred):
                    self.assign(each.value, None)
                else:
                    self.assign(each, element(value, index))
        elif kind is ast.Attribute or kind is ast.Subscript:
            aim = self.value(target, mention=False)
            if kind is ast.Attribute and aim is not None and aim[0] == "a" and aim[1] is not None and aim[1][0] == "i":
                aim[1][1].attributes.setdefault(aim[2], []).append(value)
            self.module.settings.append(RawSetting(target, aim, value, self.function, self.guards))

    def on_import(self, node: ast.Import) -> None:
        env = self.scopes[-1]
        for alias in node.names:
            value = self.importer(alias.name)
            self.mention(("q", f"import {alias.name}"), node)
            if alias.asname:
                env[alias.asname] = value
            else:
                top = alias.name.split(".")[0]
                env[top] = self.importer(top) if top != alias.name else value

    def on_import_from(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node.module or "", node.level)
        if base is None:
            return
        source = self.importer(base) if base else None
        self.mention(("q", f"import {base}"), node)
        for alias in node.names:
            if alias.name == "*":
                if source is not None and source[0] == "m":
                    self.scopes[-1].update(source[1].env)
                continue
            full = f"{base}.{alias.name}"
            value = self.importer(full)
            if value is None or value[0] != "m":
                value = ("a", source, alias.name) if source is not None and source[0] == "m" else ("q", full)
            self.mention(("q", full), node)
            self.scopes[-1][alias.asname or alias.name] = value

    def absolute(self, name: str, level: int) -> Optional[str]:
        """The absolute name of a relative import; ``None`` above the top."""
        if not level:
            return name
        parts = self.module.name.split(".")
        drop = level - 1 if self.module.is_package else level
        if drop > len(parts):
            return None
        kept = parts[: len(parts) - drop]
        return ".".join([*kept, name] if name else kept)

    def on_function(self, node: Any) -> None:
        for decorator in node.decorator_list:
            self.value(decorator)
        owner = self.owner
        name = f"{owner.name}.{node.name}" if owner is not None else node.name
        function = self.new_function(node, name, owner)
        decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
        function.static = "staticmethod" in decorators
        function.property = "property" in decorators
        if owner is not None:
            owner.methods[node.name] = function
        self.scopes[-1][node.name] = ("f", function)

    def new_function(self, node: Any, name: str, owner: Optional[Class]) -> Function:
        function = Function(self.module, name, node, owner, self.scopes[-1])
        given = node.args
        places = [*getattr(given, "posonlyargs", ()), *given.args]
        function.parameters = [a.arg for a in (*places, *given.kwonlyargs)]
        for argument, default in zip(reversed(places), reversed(given.defaults)):
            function.defaults[argument.arg] = self.value(default)
        for argument, default in zip(given.kwonlyargs, given.kw_defaults):
            if default is not None:
                function.defaults[argument.arg] = self.value(default)
        self.module.functions.append(function)
        # A class's body is no scope for its methods.
        scopes = self.scopes[:-1] if owner is not None else self.scopes
        self.waiting.append((function, list(scopes)))
        return function

    def on_class(self, node: ast.ClassDef) -> None:
        bases = [self.value(base) for base in node.bases]
        for decorator in node.decorator_list:
            self.value(decorator)
        made = Class(self.module, node.name, node, bases)
        self.module.classes.append(made)
        self.scopes[-1][node.name] = ("k", made)
        outer, self.owner = self.owner, made
        self.scopes.append({})
        self.block(node.body)
        for name, value in self.scopes.pop().items():
            if value is None or value[0] != "f":
                made.attributes.setdefault(name, []).append(value)
        self.owner = outer

    def on_return(self, node: ast.Return) -> None:
        value = self.value(node.value) if node.value is not None else ("l", None, type(None))
        if self.function is not None and len(self.function.returns) < 8:
            self.function.returns.append(value)

    def on_expression(self, node: ast.Expr) -> None:
        self.value(node.value)


def _ends(body: List[ast.stmt]) -> bool:
    """Whether a block never runs into what follows it."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        func = last.value.func
        return (isinstance(func, ast.Attribute) and func.attr in ("exit", "_exit", "Abort")) or (
            isinstance(func, ast.Name) and func.id in ("exit", "quit")
        )
    return isinstance(last, _ENDS)


_STATEMENTS: Dict[type, Callable[[Walker, Any], None]] = {
    ast.If: Walker.on_if,
    ast.For: Walker.on_for,
    ast.AsyncFor: Walker.on_for,
    ast.While: Walker.on_while,
    ast.With: Walker.on_with,
    ast.AsyncWith: Walker.on_with,
    ast.Try: Walker.on_try,
    ast.Assign: Walker.on_assign,
    ast.AnnAssign: Walker.on_annotated,
    ast.AugAssign: Walker.on_augmented,
    ast.Import: Walker.on_import,
    ast.ImportFrom: Walker.on_import_from,
    ast.FunctionDef: Walker.on_function,
    ast.AsyncFunctionDef: Walker.on_function,
    ast.ClassDef: Walker.on_class,
    ast.Return: Walker.on_return,
    ast.Expr: Walker.on_expression,
}
# Newer syntax, where this Python has it.
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = Walker.on_try
