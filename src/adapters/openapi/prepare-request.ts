/** Checked parameters to a request that lacks only its server and its credentials. Runs in the definition worker. */
import { Failure } from "../../errors/failure.ts";
import { isHeaderName, isHeaderValue, isReservedHeader } from "../header-rules.ts";
import type { BodyContent, ParameterPlan, PreparedRequest, ToolPlan } from "./plan.ts";
import { own } from "./read-document.ts";
import { encodeBody } from "./request-body.ts";
import { cookiePairs, expandPath, formPairs, headerValue, pathValue } from "./styles.ts";

export function prepareRequest(tool: ToolPlan, parameters: unknown): PreparedRequest {
  const valueAt = (parameter: ParameterPlan) => own(own(parameters, parameter.place), parameter.name);
  const given = tool.parameters.filter((parameter) => valueAt(parameter) !== undefined && valueAt(parameter) !== null);
  const headers: Record<string, string> = { accept: tool.accept };
  for (const parameter of given.filter((each) => each.place === "headers"))
    setHeader(headers, parameter, valueAt(parameter));
  const cookies = given.filter((each) => each.place === "cookies").flatMap((each) => cookiePairs(each, valueAt(each)));
  if (cookies.length > 0) headers.cookie = cookies.join("; ");
  const body = own(parameters, "body");
  const encoded =
    body === undefined || tool.contents.length === 0 ? undefined : encodeBody(contentOf(tool, parameters), body);
  if (encoded) headers["content-type"] = encoded.contentType;
  const [path, fixedQuery] = splitPath(expandPath(tool.path, pathValues(given, valueAt)));
  const query = given
    .filter((each) => each.place === "query")
    .flatMap((each) => formPairs(each.name, each, valueAt(each)));
  return {
    method: tool.method,
    path,
    query: [...(fixedQuery === "" ? [] : [fixedQuery]), ...query].join("&"),
    headers,
    ...(encoded ? { body: encoded.body } : {}),
    ...(tool.servers ? { servers: tool.servers } : {}),
    security: tool.security,
    keys: tool.keys,
  };
}

function pathValues(
  given: readonly ParameterPlan[],
  valueAt: (parameter: ParameterPlan) => unknown,
): Map<string, string> {
  const values = new Map<string, string>();
  for (const parameter of given.filter((each) => each.place === "path")) {
    const text = pathValue(parameter, valueAt(parameter));
    if (text === "" || text === ".")
      throw new Failure(
        "invalid_request",
        `Path parameter "${parameter.name}" may not be ${text === "" ? "empty" : '"."'}`,
      );
    values.set(parameter.name, text);
  }
  return values;
}

function setHeader(headers: Record<string, string>, parameter: ParameterPlan, value: unknown): void {
  const text = headerValue(parameter, value);
  if (!isHeaderName(parameter.name) || isReservedHeader(parameter.name)) {
    throw new Failure("invalid_request", `Parameters do not fit: header "${parameter.name}" cannot be set`);
  }
  if (!isHeaderValue(text)) {
    throw new Failure(
      "invalid_request",
      `Parameters do not fit: /headers/${parameter.name} holds characters that a header cannot carry`,
    );
  }
  headers[parameter.name.toLowerCase()] = text;
}

function contentOf(tool: ToolPlan, parameters: unknown): BodyContent {
  const wanted = own(parameters, "contentType");
  const content = wanted === undefined ? tool.contents[0] : tool.contents.find((each) => each.mediaType === wanted);
  if (!content)
    throw new Failure(
      "invalid_request",
      `Parameters do not fit: /contentType "${String(wanted)}" is not one of this tool`,
    );
  return content;
}

function splitPath(expanded: string): readonly [string, string] {
  const at = expanded.indexOf("?");
  return at < 0 ? [expanded, ""] : [expanded.slice(0, at), expanded.slice(at + 1)];
}
