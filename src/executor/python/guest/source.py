"""The text of a program as a function.

It is parsed as it stands and only then put into a function, so lines and strings stay as the submitter wrote them and `return`
works. Names stay those of a module: a function that says `global count` means the `count` of the program.
"""
import ast
import inspect
import linecache
import traceback

FILE = "<process>"
NAME = "<module>"
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class NotCompiled(Exception):
    """`words` are the error of the run, `shown` is for its stderr."""

    def __init__(self, words, shown=""):
        super().__init__(words)
        self.words = words
        self.shown = shown


def function_of(code, names):
    """`names` are its globals. Raises NotCompiled."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    try:
        compiled = _compile(code)
    except SyntaxError as error:
        shown = "".join(traceback.format_exception_only(type(error), error))
        raise NotCompiled(_words(error), shown) from None
    except (MemoryError, RecursionError):
        raise NotCompiled("Syntax error: the code is nested too deeply") from None
    except ValueError as error:
        raise NotCompiled(f"Syntax error: {error}") from None
    exec(compiled, names)
    function = names.pop(NAME)
    if function.__code__.co_flags & GENERATORS:
        raise NotCompiled("Syntax error: 'yield' outside function")
    return function


def _compile(code):
    body = _without_annotations(ast.parse(code, FILE).body)
    ahead = 0
    while ahead < len(body) and isinstance(body[ahead], ast.ImportFrom) and body[ahead].module == "__future__":
        ahead += 1
    front, rest = body[:ahead], body[ahead:]
    compiled = compile(_module(front, rest), FILE, "exec")
    own = _own_names(compiled) - _nonlocal_names(rest)
    if not own:
        return compiled
    declared = ast.Global(names=sorted(own), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    return compile(_module(front, [declared, *rest]), FILE, "exec")


def _module(front, statements):
    place = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef(
        name=NAME, args=arguments, body=statements or [ast.Pass(**place)], decorator_list=[], type_params=[], **place
    )
    return ast.Module(body=[*front, function], type_ignores=[])


def _own_names(compiled):
    function = next(held for held in compiled.co_consts if inspect.iscode(held))
    return {name for name in (*function.co_varnames, *function.co_cellvars) if name.isidentifier()}


def _nonlocal_names(statements):
    """A program that sees itself as a function may say `nonlocal`: those names stay its locals."""
    return {name for part in statements for node in ast.walk(part) if isinstance(node, ast.Nonlocal) for name in node.names}


def _without_annotations(statements):
    """`count: int = 0` becomes `count = 0`, for a name that is declared global takes no annotation. Not inside functions and classes."""
    kept = []
    for statement in statements:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            plain = ast.Pass() if statement.value is None else ast.Assign([statement.target], statement.value)
            kept.append(ast.copy_location(plain, statement))
            continue
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, part, None), list):
                    setattr(statement, part, _without_annotations(getattr(statement, part)))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                part.body = _without_annotations(part.body)
        kept.append(statement)
    return kept


def _words(error):
    if error.lineno is None:
        return f"Syntax error: {error.msg}"
    column = f", column {error.offset}" if error.offset else ""
    return f"Syntax error at line {error.lineno}{column}: {error.msg}"
