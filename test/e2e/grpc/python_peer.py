"""gRPC's C core, through python3-grpcio, as a peer that the tests steer: a line of JSON in for each call, a line of JSON out when it is
over. Messages are bytes here; what they mean is known to the tests alone."""
import base64
import json
import sys
import threading
import time

import grpc

address = sys.argv[1]
channels = {
    False: grpc.insecure_channel(address),
    True: grpc.insecure_channel(address, compression=grpc.Compression.Gzip),
}
running = {}
out = threading.Lock()


def tell(told):
    with out:
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def metadata_of(*several):
    seen = {}
    for metadata in several:
        for name, value in metadata or ():
            seen[name] = base64.b64encode(value).decode() if isinstance(value, bytes) else value
    return seen


def run(asked):
    headers = [
        (name, base64.b64decode(value) if name.endswith("-bin") else value)
        for name, value in asked["metadata"].items()
    ]
    # A unary call is a stream of one message to the core as well; this way both tell the same.
    method = channels[asked["compressed"]].unary_stream(asked["path"])
    call = method(base64.b64decode(asked["request"]), timeout=asked.get("deadlineSeconds"), metadata=headers)
    running[asked["number"]] = call
    messages = []
    try:
        time.sleep(asked.get("readAfterSeconds", 0))
        for message in call:
            messages.append(base64.b64encode(message).decode())
    except grpc.RpcError:
        pass
    tell({
        "number": asked["number"],
        "code": call.code().value[0],
        "message": call.details() or "",
        "messages": messages,
        "metadata": metadata_of(call.initial_metadata(), call.trailing_metadata()),
    })
    del running[asked["number"]]


for line in sys.stdin:
    order = json.loads(line)
    if "cancel" in order:
        if order["cancel"] in running:
            running[order["cancel"]].cancel()
    else:
        threading.Thread(target=run, args=(order,), daemon=True).start()
