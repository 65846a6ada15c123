"""sys.stdout and sys.stderr of a program: line by line to the host."""
import io
import time

PIECE_CHARACTERS_MAX = 64 * 1024
# A program that prints line after line without end would cost the host one message a line: this many go at once, and
# one more each millisecond; beyond that lines wait for each other until there are some.
LINES_AT_ONCE = 500
GATHERED_CHARACTERS = 4096

_now = time.monotonic


class Stream(io.TextIOBase):
    encoding = "utf-8"
    errors = "strict"

    def __init__(self, channel, name, bytes_max):
        self._channel = channel
        self._name = name
        self._bytes_left = bytes_max
        self._pieces = []
        self._characters = 0
        self._credit = LINES_AT_ONCE
        self._credit_at = _now()

    @property
    def name(self):
        return f"<{self._name}>"

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._pieces.append(text)
        self._characters += len(text)
        if self._characters >= PIECE_CHARACTERS_MAX or (text.endswith("\n") and self._may_go()):
            self.flush()
        return len(text)

    def flush(self):
        if not self._pieces:
            return
        whole = "".join(self._pieces)
        self._pieces.clear()
        self._characters = 0
        for at in range(0, len(whole), PIECE_CHARACTERS_MAX):
            piece = whole[at : at + PIECE_CHARACTERS_MAX]
            self._bytes_left -= len(piece.encode("utf-8", "replace"))
            self._channel.send({"type": self._name, "text": piece})

    def write_what_fits(self, text):
        """For words of ours: they must not be what breaks the program's limit."""
        self.flush()
        fitting = text.encode("utf-8", "replace")[: max(0, self._bytes_left)].decode("utf-8", "ignore")
        self.write(fitting)
        self.flush()

    def _may_go(self):
        now = _now()
        self._credit = min(LINES_AT_ONCE, self._credit + (now - self._credit_at) * 1000)
        self._credit_at = now
        if self._credit < 1:
            return self._characters >= GATHERED_CHARACTERS
        self._credit -= 1
        return True
