"""One program, from its text to its one `ended`.

How its text becomes a function is in source.py.
"""
import builtins
import errno
import gc
import mmap
import os
import random
import sys
import traceback

from channel import frame, well_formed
from services import Calls, ToolError, gather, services
from source import NotCompiled, function_of
from streams import Stream
from values import from_json, read_only, to_json

OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))

# Python takes memory by the megabyte: with two it can speak again.
RESERVE_BYTES = 2 * 1024 * 1024


class Run:
    def __init__(self, channel, request):
        self._channel = channel
        self._request = request
        self._error_characters_max = request["errorCharactersMax"]
        self._memory_mb = request["memoryMb"]
        # Made ahead: when memory has run out there may be none to make it.
        self._out_of_memory = frame(
            {
                "type": "ended",
                "result": "memory",
                "error": f"The program needs more memory than its limit of {self._memory_mb} MB",
            }
        )
        # Address space only: pages that nobody touches cost nothing.
        self._reserve = mmap.mmap(-1, RESERVE_BYTES)
        self._program_names = {}
        self.stdout = Stream(channel, "stdout", request["outputBytes"])
        self.stderr = Stream(channel, "stderr", request["outputBytes"])

    def go(self):
        """Runs the program; returns when the host was told how it ended."""
        try:
            self._go()
        except MemoryError as error:
            self._lack_memory(error)

    def _go(self):
        self._channel.send({"type": "started"})
        sys.stdout, sys.stderr = self.stdout, self.stderr
        try:
            function = self._compile()
        except NotCompiled as problem:
            self._end("syntax", problem.words)
            return
        try:
            self._finish(function())
        except SystemExit as leaving:
            self._left(leaving)
        except BaseException as error:
            self._thrown(error)

    def _compile(self):
        code = self._request["code"]
        # Should a parser crash all the same, the host knows whose fault it was.
        self._channel.send({"type": "transpiling", "done": False})
        try:
            function = function_of(code, self._names())
        except NotCompiled as problem:
            self.stderr.write_what_fits(problem.shown)
            raise
        self._channel.send({"type": "transpiling", "done": True})
        return function

    def _names(self):
        calls = Calls(
            self._channel, self._flush, self._request["parametersCharactersMax"], self._request["callsInFlightMax"]
        )
        random.seed(self._request["seed"])
        self._program_names.update(
            __name__="__main__",
            __builtins__=builtins,
            env=read_only(from_json(self._request["env"])),
            output=self._output,
            services=services(calls),
            gather=gather,
            ToolError=ToolError,
        )
        return self._program_names

    def _flush(self):
        self.stdout.flush()
        self.stderr.flush()

    def _output(self, value):
        if not isinstance(value, dict):
            raise TypeError("Cannot store the output: output() takes a dict")
        self._emit(value, "the output")

    def _emit(self, value, what):
        entries = []
        size = 2
        for key, held in value.items():
            # A number as a key becomes text, as JSON has it.
            name = key if isinstance(key, str) else next(iter(from_json(to_json({key: None}, what))))
            text = well_formed(to_json(held, what))
            size += len(text.encode()) + len(name)
            if size > self._request["outputBytes"]:
                self._flush()
                error = f"The structured output is larger than {self._request['outputBytes']} bytes"
                self._channel.send({"type": "ended", "result": "output_too_large", "error": error})
                self._channel.wait_for_end()
            entries.append([well_formed(name), text])
        self._channel.send({"type": "output", "entries": entries})

    def _finish(self, value):
        if isinstance(value, dict):
            self._emit(value, "the returned value")
        elif value is not None:
            self._emit({"result": value}, "the returned value")
        self._end("success", "")

    def _left(self, leaving):
        if leaving.code is None or leaving.code == 0:
            self._end("success", "")
        else:
            self._thrown(leaving)

    def _thrown(self, error):
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            self._lack_memory(error)
            return
        try:
            words = _words(error)
            story = _story(error, self._error_characters_max)
        except MemoryError as lacking:
            self._lack_memory(lacking)
            return
        except BaseException:
            # An error that cannot even be described: its methods are the program's.
            words, story = type(error).__name__, ""
        self.stderr.write_what_fits(story)
        self._end("thrown", words)

    def _lack_memory(self, error):
        """Lets go of all that the program holds, to have room for saying so."""
        self._reserve.close()
        _forget(error)
        self._program_names.clear()
        gc.collect()
        try:
            self._flush()
        except MemoryError:
            # Text that was not sent yet: no more of it can be had.
            pass
        self._channel.send_bytes(self._out_of_memory)

    def _end(self, result, error):
        self._flush()
        self._channel.send({"type": "ended", "result": result, "error": _cut(error, self._error_characters_max)})


def _words(error):
    """The error's own message; with its kind where the message alone says nothing."""
    name = type(error).__name__
    try:
        message = str(error)
    except MemoryError:
        raise
    except BaseException:
        return name
    if message == "":
        return name
    return f"{name}: {message}" if isinstance(error, (LookupError, SystemExit)) else message


def _story(error, characters_max):
    """A traceback of the submitter's lines and the libraries' below them, without ours above."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    _hide_own_frames(told, set())
    text = "".join(told.format())
    if len(text) <= 2 * characters_max:
        return text
    return f"{text[:characters_max]}\n...\n{text[-characters_max:]}"


def _hide_own_frames(told, seen):
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [place for place in told.stack if not place.filename.startswith(OWN_FOLDER)]
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        _hide_own_frames(other, seen)


def _forget(error):
    """Lets go of everything the frames of an error hold."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        before = error.__context__
        error.__context__ = error.__cause__ = None
        error = before


def _cut(text, units_max):
    text = well_formed(text)
    if len(text) * 2 > units_max and len(text.encode("utf-16-le")) > units_max * 2:
        return text.encode("utf-16-le")[: units_max * 2].decode("utf-16-le", "ignore")
    return text
