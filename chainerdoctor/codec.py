"""Dataclass ↔ JSON values, derived from the annotations.

Supported annotations: ``str``, ``int``, ``float``, ``bool``, ``None``, ``Optional``, ``Tuple[X, ...]``,
``Tuple[X, Y]``, ``Dict[str, X]`` and dataclasses of these. Encoders and decoders are compiled once per class,
because a snapshot of a large cluster holds hundreds of thousands of facts.

Decoding is strict about types (a snapshot is data from elsewhere) and lenient about extent: a field that is not known
is ignored and a field that is absent takes its default, so that a newer snapshot loads what this version knows.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from typing import Any, Callable, Dict, List, Tuple, Type, TypeVar, Union, get_type_hints

from chainerdoctor.facts import Fact, Unknown, fact_kinds

T = TypeVar("T")
Convert = Callable[[Any], Any]


class CodecError(ValueError):
    """A value does not have the shape that its annotation asks for. The text names the field."""


_ENCODERS: Dict[Any, Convert] = {}
_DECODERS: Dict[Any, Convert] = {}


def to_json(value: Any) -> Any:
    """Turn a dataclass instance into JSON values (dict, list, str, int, float, bool, None).

    Raises:
        CodecError: a field holds something that its annotation does not allow.
    """
    return _encoder(type(value))(value)


#: Types that JSON has as they are.
_SCALARS = (str, int, bool)


def from_json(kind: Type[T], raw: Any) -> T:
    """Build an instance of the dataclass ``kind`` from JSON values.

    Raises:
        CodecError: a value has another shape than the annotation says, or a field without default is absent.
    """
    made: T = _decoder(kind)(raw)
    return made


def fact_to_json(fact: Fact) -> Dict[str, Any]:
    """A fact as a JSON object whose key ``kind`` names its class."""
    if isinstance(fact, Unknown):
        raw = json.loads(fact.raw)
        raw["kind"] = fact.name
        return dict(raw)
    made: Dict[str, Any] = _encoder(type(fact))(fact)
    return {"kind": fact.kind, **made}


def fact_from_json(raw: Any) -> Fact:
    """The inverse of :func:`fact_to_json`; a kind that is not known here becomes :class:`Unknown`.

    Raises:
        CodecError: not a JSON object with a ``kind``, or a known kind whose fields are wrong.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        raise CodecError("a fact has to be an object with a 'kind'")
    kind = fact_kinds().get(raw["kind"])
    if kind is None:
        rest = {key: value for key, value in raw.items() if key != "kind"}
        return Unknown(raw["kind"], json.dumps(rest, sort_keys=True))
    fact: Fact = _decoder(kind)(raw)
    return fact


def _encoder(annotation: Any) -> Convert:
    found = _ENCODERS.get(annotation)
    if found is None:
        found = _ENCODERS[annotation] = _make_encoder(annotation)
    return found


def _decoder(annotation: Any) -> Convert:
    found = _DECODERS.get(annotation)
    if found is None:
        found = _DECODERS[annotation] = _make_decoder(annotation)
    return found


def _arguments(annotation: Any) -> Tuple[Any, Tuple[Any, ...]]:
    # typing.get_origin/get_args exist from 3.8 on and treat Tuple[()] differently by version; facts do not use it.
    return getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())


def _make_encoder(annotation: Any) -> Convert:
    if dataclasses.is_dataclass(annotation):
        return _dataclass_encoder(annotation)
    origin, arguments = _arguments(annotation)
    if origin is Union:
        inner = _encoder(_sole_option(annotation, arguments))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = _encoder(arguments[0])
            if arguments[0] in _SCALARS:
                alike = {arguments[0]}
                return lambda value: list(value) if set(map(type, value)) <= alike else [item(v) for v in value]
            return lambda value: [item(v) for v in value]
        items = [_encoder(a) for a in arguments]
        return lambda value: [encode(v) for encode, v in zip(items, value)]
    if origin is dict:
        entry = _encoder(arguments[1])
        return lambda value: {k: entry(v) for k, v in value.items()}
    if annotation is float:
        return _finite_or_text
    if annotation in (*_SCALARS, type(None)):
        return _scalar_decoder(annotation)
    raise CodecError(f"facts cannot hold values of the type {annotation}")


def _dataclass_encoder(kind: Any) -> Convert:
    """Snapshots of large clusters have a million fields: those that stay as they are, are fetched and checked at once."""
    hints = get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind)]
    if not names:
        return lambda value: {}
    encoders = [(name, _encoder(hints[name])) for name in names]
    changing = [(name, encode) for name, encode in encoders if hints[name] not in _SCALARS]
    wanted = {name: hints[name] for name in names if hints[name] in _SCALARS}
    types = tuple(wanted.values())
    fetch = operator.attrgetter(*wanted) if len(wanted) > 1 else None

    def encode(value: Any) -> Dict[str, Any]:
        if fetch is not None:
            plain = fetch(value)
            if tuple(map(type, plain)) == types:
                made = dict(zip(wanted, plain))
                for name, change in changing:
                    made[name] = change(getattr(value, name))
                return made
        return {name: change(getattr(value, name)) for name, change in encoders}

    return encode


def _finite_or_text(value: Any) -> Any:
    """JSON has no NaN or infinity: they travel as strings and come back as floats."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return _decode_float(value)


def _decode_float(value: Any) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CodecError(f"expected a number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise CodecError("a number is too large for a float") from None


def _sole_option(annotation: Any, arguments: Tuple[Any, ...]) -> Any:
    options: List[Any] = [a for a in arguments if a is not type(None)]
    if len(options) != 1 or len(arguments) != 2:
        raise CodecError(f"facts can use Optional[X] but no other union: {annotation}")
    return options[0]


def _make_decoder(annotation: Any) -> Convert:
    if dataclasses.is_dataclass(annotation):
        return _dataclass_decoder(annotation)
    origin, arguments = _arguments(annotation)
    if origin is Union:
        inner = _decoder(_sole_option(annotation, arguments))
        return lambda raw: None if raw is None else inner(raw)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = _decoder(arguments[0])
            return lambda raw: tuple([item(v) for v in _expect(list, raw)])
        items = [_decoder(a) for a in arguments]

        def decode_fixed(raw: Any) -> Tuple[Any, ...]:
            if len(_expect(list, raw)) != len(items):
                raise CodecError(f"expected {len(items)} values, got {len(raw)}")
            return tuple([decode(v) for decode, v in zip(items, raw)])

        return decode_fixed
    if origin is dict:
        entry = _decoder(arguments[1])
        return lambda raw: {k: entry(v) for k, v in _expect(dict, raw).items()}
    if annotation is float:
        return _decode_float
    if annotation in (*_SCALARS, type(None)):
        return _scalar_decoder(annotation)
    raise CodecError(f"facts cannot hold values of the type {annotation}")


def _scalar_decoder(wanted: type) -> Convert:
    def decode(raw: Any) -> Any:
        if type(raw) is not wanted:
            raise CodecError(f"expected {wanted.__name__}, got {_shown(raw)}")
        return raw

    return decode


def _dataclass_decoder(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    fields = [(f.name, _decoder(hints[f.name])) for f in dataclasses.fields(kind)]
    required = frozenset(
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )

    def decode(raw: Any) -> Any:
        _expect(dict, raw)
        values = {}
        for name, convert in fields:
            if name in raw:
                try:
                    values[name] = convert(raw[name])
                except CodecError as error:
                    raise CodecError(f"{kind.__name__}.{name}: {error}") from None
            elif name in required:
                raise CodecError(f"{kind.__name__} lacks the field '{name}'")
        return kind(**values)

    return decode


def _expect(wanted: type, raw: Any) -> Any:
    if type(raw) is not wanted:
        raise CodecError(f"expected {'a list' if wanted is list else 'an object'}, got {_shown(raw)}")
    return raw


def _shown(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "…"
