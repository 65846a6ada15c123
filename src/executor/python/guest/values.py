"""Values of a program as JSON text and back: what JSON cannot hold is refused in words, and `env` takes no change."""
import json

DEPTH_MAX = 512

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def to_json(value, what):
    """JSON text; raises TypeError that says what stands in the way."""
    try:
        text = _encode(value)
    except MemoryError:
        raise
    except RecursionError:
        raise TypeError(f"Cannot store {what} as JSON: it is nested too deeply") from None
    except Exception as error:
        raise TypeError(f"Cannot store {what} as JSON: {error}") from None
    if is_deep(text):
        raise TypeError(f"Cannot store {what} as JSON: it is nested deeper than {DEPTH_MAX} levels")
    return text


def is_deep(text):
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return False
    depth = 0
    quoted = False
    characters = iter(text)
    for character in characters:
        if quoted:
            if character == "\\":
                next(characters)
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif character in "]}":
            depth -= 1
    return False


def from_json(text):
    return _decode(text)


def _refuse(self, *_arguments, **_named):
    raise TypeError("env is read-only")


class ReadOnlyDict(dict):
    """A dict still, so that it can be stored and shown."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class ReadOnlyList(list):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def read_only(value):
    if isinstance(value, dict):
        return ReadOnlyDict((key, read_only(held)) for key, held in value.items())
    if isinstance(value, list):
        return ReadOnlyList(read_only(held) for held in value)
    return value
