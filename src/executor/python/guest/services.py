"""`services`, `gather` and `ToolError`: tool calls as a program writes them.

A call sends one frame and waits for its answer. One that was started waits only when its result is asked for, and answers that
come meanwhile are kept for their calls.
"""
from values import from_json, is_deep, to_json


class ToolError(Exception):
    """A tool call that failed. `code` is stable, such as "not_found"; `status` is the HTTP status that belongs to it."""

    def __init__(self, message, code="", status=0):
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status


class Calls:
    def __init__(self, channel, flush, parameters_characters_max, in_flight_max):
        self._channel = channel
        self._flush = flush
        self._parameters_characters_max = parameters_characters_max
        self._in_flight_max = in_flight_max
        self._last = 0
        self._waiting = set()
        self._answers = {}

    def start(self, service_id, tool_id, spelled, arguments, named):
        message = {"type": "call", "serviceId": service_id, "toolId": tool_id}
        if spelled:
            message["spelling"] = "snake_case"
        parameters = _parameters(arguments, named)
        if parameters is not None:
            message["parameters"] = self._text(parameters[0], service_id, tool_id)
        if len(self._waiting) >= self._in_flight_max:
            most = f"at most {self._in_flight_max} calls may be in flight"
            raise ToolError(f'Cannot call tool "{service_id}.{tool_id}": {most}', "overloaded", 429)
        self._last += 1
        message["callId"] = self._last
        self._waiting.add(self._last)
        self._flush()
        self._channel.send(message)
        return self._last

    def wait(self, call_id):
        while call_id in self._waiting:
            self._take(self._channel.receive())
        answer = self._answers.pop(call_id)
        if answer["ok"]:
            return from_json(answer["value"]) if "value" in answer else None
        raise ToolError(answer["message"], answer["code"], answer["status"])

    def _take(self, message):
        if message["type"] == "answer" and message["callId"] in self._waiting:
            self._waiting.discard(message["callId"])
            self._answers[message["callId"]] = message

    def _text(self, parameters, service_id, tool_id):
        text = to_json(parameters, "the parameters")
        # Counted as the host counts: a character beyond the basic plane is two.
        if len(text) > self._parameters_characters_max or len(text.encode("utf-16-le", "replace")) > 2 * self._parameters_characters_max:
            raise ToolError(f'Cannot call tool "{service_id}.{tool_id}": its parameters are too large', "too_large", 413)
        return text


def _parameters(arguments, named):
    """The one value to send, in a tuple; None when the call has no argument."""
    if arguments and named:
        raise TypeError("A tool takes one dict or keyword arguments, not both")
    if len(arguments) > 1:
        raise TypeError(f"A tool takes one dict or keyword arguments, not {len(arguments)} values")
    if arguments:
        return arguments
    return (named,) if named else None


class PendingCall:
    """A call under way."""

    def __init__(self, calls, call_id):
        self._calls = calls
        self._call_id = call_id
        self._outcome = None

    def result(self):
        """Waits for the answer; raises ToolError. May be asked again."""
        if self._outcome is None:
            try:
                self._outcome = (self._calls.wait(self._call_id), None)
            except ToolError as error:
                self._outcome = (None, error)
        value, error = self._outcome
        if error is not None:
            raise error
        return value


def gather(*pending):
    """The results of calls that were started, in the order given. All are waited for; then the first failure is raised."""
    calls = list(pending[0]) if len(pending) == 1 and not isinstance(pending[0], PendingCall) else list(pending)
    for call in calls:
        if not isinstance(call, PendingCall):
            raise TypeError("gather() takes calls made with .start(...), such as services.petstore.get_pet.start(path={...})")
    failure = None
    for call in calls:
        try:
            call.result()
        except ToolError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return [call.result() for call in calls]


class Tool:
    __slots__ = ("_calls", "_service_id", "_tool_id", "_spelled")

    def __init__(self, calls, service_id, tool_id, spelled):
        self._calls = calls
        self._service_id = service_id
        self._tool_id = tool_id
        self._spelled = spelled

    def __call__(self, *arguments, **named):
        return self._calls.wait(self._begin(arguments, named))

    def invoke(self, *arguments, **named):
        return self._calls.wait(self._begin(arguments, named))

    def start(self, *arguments, **named):
        return PendingCall(self._calls, self._begin(arguments, named))

    def __repr__(self):
        return f"<tool {self._service_id}.{self._tool_id}>"

    def _begin(self, arguments, named):
        return self._calls.start(self._service_id, self._tool_id, self._spelled, arguments, named)


class Named:
    """Has every name there is: by attribute as Python spells it, by key exactly."""

    __slots__ = ("_by_key", "_by_attribute", "_shown")

    def __init__(self, by_key, by_attribute, shown):
        self._by_key = by_key
        self._by_attribute = by_attribute
        self._shown = shown

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"Names are text, not {type(name).__name__}")
        return self._by_key(name)

    def __getattr__(self, name):
        # What Python itself asks for (copying, pickling, showing) is not a tool.
        if name.startswith("__"):
            raise AttributeError(name)
        return self._by_attribute(name)

    def __iter__(self):
        raise TypeError(f"{self._shown} cannot be listed")

    def __repr__(self):
        return f"<{self._shown}>"


def services(calls):
    def service(service_id):
        def exact(tool_id):
            return Tool(calls, service_id, tool_id, False)

        tools = Named(exact, exact, f"tools of {service_id}")

        def spelled(name):
            return tools if name == "tools" else Tool(calls, service_id, name, True)

        return Named(exact, spelled, f"service {service_id}")

    return Named(service, service, "services")
