"""What public functions, classes and methods say of themselves: parameters, and an example."""

import enum
import importlib
import inspect
import re

from test_public_names import PUBLIC


def _public():
    """Each public function and class, and each method of one, once."""
    seen = set()
    for package, names in PUBLIC.items():
        for name in names.split():
            found = getattr(importlib.import_module(package), name)
            methods = _methods(found) if inspect.isclass(found) else ()
            for each in (found, *methods):
                if (inspect.isclass(each) or inspect.isfunction(each)) and id(each) not in seen:
                    seen.add(id(each))
                    yield each


def _methods(kind):
    """Public functions of a class, and of its bases that are ours."""
    for name, _ in inspect.getmembers(kind):
        found = inspect.getattr_static(kind, name)
        found = getattr(found, "__func__", found)
        ours = inspect.isfunction(found) and found.__module__.startswith("bootprob")
        if ours and not name.startswith("_"):
            yield found


def _takes_something(each):
    function = each.__init__ if inspect.isclass(each) else each
    return bool(set(inspect.signature(function).parameters) - {"self", "cls"})


def _gaps():
    parameters, example = [], []
    for each in _public():
        text, name = inspect.getdoc(each), f"{each.__module__}.{each.__qualname__}"
        assert text, name
        if inspect.isclass(each) and issubclass(each, (BaseException, enum.Enum)):
            continue
        if _takes_something(each) and not {"Parameters", "Attributes"} & set(text.split("\n")):
            parameters.append(name)
        if ">>>" not in text:
            example.append(name)
    return parameters, example


def _undescribed():
    """Parameters and attributes with a type and nothing else."""
    for each in _public():
        text = inspect.getdoc(each)
        for listed in re.findall(
            r"(?ms)^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text
        ):
            for name in re.findall(r"(?m)^(\S.*)\n(?! {4}\S)", listed + "\n"):
                yield f"{each.__module__}.{each.__qualname__}: {name}"


def test_what_takes_something_says_what():
    assert _gaps()[0] == []


def test_each_has_an_example():
    assert _gaps()[1] == []


def test_every_parameter_and_attribute_is_described():
    assert list(_undescribed()) == []
