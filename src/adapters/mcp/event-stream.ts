/** An answer sent as server-sent events, once all of it is there: the messages it holds, as one JSON list. */

/** Without parameters, in lower case; empty when there is none. */
export function essence(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Data of the events of type `message`. An event that was not finished by a blank line is not one. */
export function joinedEvents(stream: string): string {
  const messages: string[] = [];
  let data: string[] = [];
  let type = "";
  for (const line of stream.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)) {
    if (line === "") {
      const text = data.join("\n");
      if (text !== "" && (type === "" || type === "message")) messages.push(text);
      data = [];
      type = "";
      continue;
    }
    const [, field, value] = /^([^:]*)(?:: ?)?(.*)$/s.exec(line) ?? [];
    if (field === "data") data.push(value ?? "");
    else if (field === "event") type = value ?? "";
  }
  return `[${messages.join(",")}]`;
}
