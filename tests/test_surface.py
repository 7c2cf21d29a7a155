"""Every public name says what it is."""

import importlib
import inspect
import pkgutil

import deepprox

MODULES = [
    info.name
    for info in pkgutil.walk_packages(deepprox.__path__, "deepprox.")
    if not any(part.startswith("_") for part in info.name.split("."))
]


def public(scope, module):
    """Public functions and classes that ``module`` defines, found in a module or a class."""
    for name, member in vars(scope).items():
        inner = inspect.unwrap(member) if callable(member) else member
        if isinstance(inner, property | classmethod | staticmethod):
            inner = inner.fget if isinstance(inner, property) else inner.__func__
        if name[0] != "_" and getattr(inner, "__module__", None) == module.__name__:
            if inspect.isclass(inner):
                yield from public(inner, module)
            if inspect.isclass(inner) or inspect.isfunction(inner):
                yield scope, name


def test_modules_and_their_names_are_documented():
    silent = []
    for name in MODULES:
        module = importlib.import_module(name)
        silent += [] if inspect.getdoc(module) else [name]
        silent += [
            f"{name}: {scope.__name__}.{n}"
            for scope, n in public(module, module)
            if not inspect.getdoc(getattr(scope, n))
        ]
    assert not silent


def test_the_front_door_is_documented():
    assert inspect.getdoc(deepprox)
    assert deepprox.__all__ == sorted(set(deepprox.__all__))
    assert not [name for name in deepprox.__all__ if not inspect.getdoc(getattr(deepprox, name))]
