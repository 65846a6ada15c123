"""Frames between a run and the host over one descriptor: four bytes of length (big endian), then JSON."""
import json
import os

HEADER_BYTES = 4

_write, _read = os.write, os.read
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def well_formed(text):
    """JSON and UTF-8 cannot hold a lone surrogate: it becomes U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def frame(message):
    body = well_formed(_encode(message)).encode()
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def parse(body):
    return _decode(body.decode())


class Channel:
    def __init__(self, descriptor):
        self.descriptor = descriptor

    def send(self, message):
        self.send_bytes(frame(message))

    def send_bytes(self, data):
        """Blocks until the host has room; ends the process when the host no longer listens."""
        view = memoryview(data)
        try:
            while view:
                view = view[_write(self.descriptor, view) :]
        except OSError:
            os._exit(0)

    def receive(self):
        """The next message of the host; ends the process when there will be none."""
        length = int.from_bytes(self._exactly(HEADER_BYTES), "big")
        return parse(self._exactly(length))

    def wait_for_end(self):
        """Ends the process when the host has taken everything: leaving first could make one of its late answers fail, and with
        it the reading of what is still under way."""
        while True:
            self._exactly(1)

    def _exactly(self, length):
        pieces = []
        while length > 0:
            try:
                piece = _read(self.descriptor, min(length, 1 << 20))
            except OSError:
                os._exit(0)
            if not piece:
                os._exit(0)
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)
