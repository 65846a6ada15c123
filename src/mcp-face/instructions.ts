/** What `initialize` tells an agent about this server: the way through its tools. */
export const instructions = `Troupe runs small programs that call tools of installed services (APIs).

1. search_tools finds what can be called; get_tool_docs says how a program calls it.
2. get_environment_docs, once, says how programs are written.
3. run_process runs a program: make all calls you need in it, at the same time where they do not depend on each other, and return only what you want to read.
4. If it has not ended by then, the answer says so: get_process with "wait" goes on, kill_process stops it.

invoke_tool calls one tool without a program. Errors are results with isError and end with a code: "not_found", "invalid_request" (correct the named field), "conflict" (its state forbids that now), "rate_limit_exceeded" and "queue_full" (wait and try again), "upstream_failed" (the service behind the tool failed).`;
