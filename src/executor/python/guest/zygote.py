"""The fork server: one process that has loaded what programs use, and forks itself for each of them.

It runs alone in its namespaces (no network, no files but Python's own, first process of its own process table) and never
executes a program itself. The host connects once for each run; the first eight bytes are the number of the run, the rest is
read by the fork. Control frames come on descriptor 3 and go out on 4:

    from the host: kill {run}; the end of the pipe: leave
    to the host:   ready; exited {run, code, signal, cpuMs}
"""
import gc
import os
import resource
import select
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import channel as channels  # noqa: E402
import program  # noqa: E402
import seccomp  # noqa: E402

CONTROL_IN, CONTROL_OUT = 3, 4
ADDRESS = "/run/troupe"
BACKLOG = 1024
NUMBER_BYTES = 8
# A connection of our own host brings its number at once.
NUMBER_SECONDS = 5
RUN_DESCRIPTOR = 3
DESCRIPTORS_MAX = 64

# What programs of agents import. A fork has them for nothing; anything else of the library is loaded when asked for.
PRELOADED = """
    array base64 binascii bisect calendar collections collections.abc contextlib copy csv dataclasses datetime decimal
    difflib encodings.ascii encodings.latin_1 encodings.utf_16_le enum fractions functools hashlib heapq hmac html html.parser inspect io itertools json keyword math
    numbers operator pprint random re secrets statistics string struct textwrap time traceback types typing
    unicodedata urllib.parse uuid warnings xml.etree.ElementTree zlib zoneinfo
""".split()


class Zygote:
    def __init__(self):
        self._filter = seccomp.build()
        self._host = channels.Channel(CONTROL_OUT)
        self._runs = {}
        self._doomed = set()
        self._received = b""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(ADDRESS)
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        os.set_blocking(CONTROL_IN, False)
        self._wake_in, wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(wake_out, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)

    def serve(self):
        poll = select.poll()
        for descriptor in (self._listener.fileno(), CONTROL_IN, self._wake_in):
            poll.register(descriptor, select.POLLIN)
        rehearse()
        gc.collect()
        gc.freeze()
        prove(self._filter)
        self._host.send({"type": "ready"})
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == CONTROL_IN:
                    self._obey()
                elif descriptor == self._wake_in:
                    self._reap()
                else:
                    self._accept()

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        with connection:
            connection.settimeout(NUMBER_SECONDS)
            try:
                number_bytes = connection.recv(NUMBER_BYTES, socket.MSG_WAITALL)
            except OSError:
                return
            if len(number_bytes) < NUMBER_BYTES:
                return
            number = int.from_bytes(number_bytes, "big")
            connection.setblocking(True)
            pid = None if number in self._doomed else fork()
            if pid is None:
                self._host.send({"type": "exited", "run": number, "code": None, "signal": None, "cpuMs": 0})
                return
            if pid == 0:
                try:
                    become_run(connection.fileno(), self._filter)
                finally:
                    os._exit(70)
            self._runs[pid] = number

    def _obey(self):
        try:
            received = os.read(CONTROL_IN, 65536)
        except BlockingIOError:
            return
        if not received:
            # First process of its namespace: everything in it ends with this one.
            os._exit(0)
        self._received += received
        while len(self._received) >= channels.HEADER_BYTES:
            end = channels.HEADER_BYTES + int.from_bytes(self._received[: channels.HEADER_BYTES], "big")
            if len(self._received) < end:
                return
            message = channels.parse(self._received[channels.HEADER_BYTES : end])
            self._received = self._received[end:]
            self._kill(message["run"])

    def _kill(self, number):
        for pid, run in self._runs.items():
            if run == number:
                os.kill(pid, signal.SIGKILL)
                return
        # Not accepted yet, or gone already: then the number never comes again.
        self._doomed.add(number)

    def _reap(self):
        try:
            os.read(self._wake_in, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._runs.pop(pid, None)
            if number is None:
                continue
            killed = os.WIFSIGNALED(status)
            self._host.send(
                {
                    "type": "exited",
                    "run": number,
                    "code": None if killed else os.WEXITSTATUS(status),
                    "signal": signal.Signals(os.WTERMSIG(status)).name if killed else None,
                    "cpuMs": round((usage.ru_utime + usage.ru_stime) * 1000),
                }
            )


def fork():
    """None when the system refuses."""
    try:
        return os.fork()
    except OSError:
        return None


REHEARSALS = 30
REHEARSED = """
print({"a": [1, 2.5, "x"]})
output({"n": sum(n * n for n in range(10))})
return {"done": True}
"""


def rehearse():
    """Python adapts its code to what it executes: done before the fork, it is not done (and its pages are not copied) in each."""
    streams = sys.stdout, sys.stderr
    sink = channels.Channel(os.open("/run/sink", os.O_CREAT | os.O_WRONLY))
    request = {
        "code": REHEARSED,
        "env": "{}",
        "seed": 1,
        "memoryMb": 1,
        "outputBytes": 1_000,
        "errorCharactersMax": 1_000,
        "parametersCharactersMax": 1_000,
        "callsInFlightMax": 1,
    }
    for round in range(REHEARSALS):
        failing = "raise Exception()\n" if round % 8 == 7 else ""
        program.Run(sink, {**request, "code": failing + REHEARSED}).go()
    os.close(sink.descriptor)
    os.unlink("/run/sink")
    sys.stdout, sys.stderr = streams


def prove(system_calls):
    """A fork can give up its rights here, and then has none: else nobody may be served."""
    pid = os.fork()
    if pid == 0:
        try:
            seccomp.install(system_calls)
            try:
                os.kill(os.getpid(), 0)
            except PermissionError:
                os._exit(0)
        finally:
            os._exit(70)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("the system call filter cannot be installed")


def become_run(connection, system_calls):
    """In the fork: lets go of all that is the zygote's, gives up all it may not do, and only then looks at the program."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(connection, RUN_DESCRIPTOR, inheritable=False)
    os.closerange(RUN_DESCRIPTOR + 1, 1024)
    os.dup2(1, 2)
    channel = channels.Channel(RUN_DESCRIPTOR)
    request = channel.receive()
    limit(request)
    seccomp.install(system_calls)
    program.Run(channel, request).go()
    channel.wait_for_end()


def limit(request):
    def hard(kind, value):
        resource.setrlimit(kind, (value, value))

    hard(resource.RLIMIT_CORE, 0)
    hard(resource.RLIMIT_FSIZE, 0)
    hard(resource.RLIMIT_NPROC, 0)
    hard(resource.RLIMIT_NOFILE, DESCRIPTORS_MAX)
    hard(resource.RLIMIT_AS, request["addressBytes"])
    cpu_ms = request["cpuMs"]
    if cpu_ms is not None:
        # The timer is exact; the limit in whole seconds stands behind it.
        hard(resource.RLIMIT_CPU, int(cpu_ms / 1000) + 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, max(cpu_ms, 1) / 1000)


def preload():
    for name in PRELOADED:
        __import__(name)


if __name__ == "__main__":
    preload()
    Zygote().serve()
