/**
 * An HTTP answer to the tool's result. GraphQL over HTTP puts its own errors into the body, whatever the status: those are
 * results. Anything that is no GraphQL answer is a failure of the target.
 */
import { Failure } from "../../errors/failure.ts";
import { toolAnswerDepthMax } from "../../limits.ts";
import type { OutboundAnswer } from "../../ports/fetcher.ts";

export interface ToolResult {
  /** Value of the tool's field; null when it failed. */
  readonly data: unknown;
  readonly errors: readonly GraphqlError[];
  /** What the target adds, such as costs. */
  readonly extensions?: Tree;
}

/** Locations are left out: they point into a text the caller never saw. */
export interface GraphqlError {
  readonly message: string;
  readonly path?: readonly unknown[];
  readonly extensions?: Tree;
}

type Tree = Readonly<Record<string, unknown>>;

/** @throws Failure upstream_failed saying what came instead. Nothing of the body is in it. */
export function toResult(answer: OutboundAnswer, field: string): ToolResult {
  if (answer.status >= 300 && answer.status < 400) {
    throw new Failure(
      "upstream_failed",
      `The endpoint answered with a redirect (status ${answer.status}), which is not followed: set config "endpoint" to where it leads`,
    );
  }
  const body = readJson(answer);
  if (!isTree(body)) throw foreign(answer);
  const errors = Array.isArray(body.errors) ? body.errors.map(readError) : [];
  const { data, extensions } = body;
  if (!isTree(data) && errors.length === 0 && !(data === null && Array.isArray(body.errors))) throw foreign(answer);
  return {
    data: fieldValue(data, field, errors),
    errors,
    ...(isTree(extensions) ? { extensions } : {}),
  };
}

function fieldValue(data: unknown, field: string, errors: readonly GraphqlError[]): unknown {
  if (isTree(data) && Object.hasOwn(data, field)) return data[field];
  if (errors.length > 0 || data === null) return null;
  throw new Failure("upstream_failed", `The answer of the endpoint lacks field "${field}"`);
}

function readError(error: unknown): GraphqlError {
  if (!isTree(error)) return { message: "The target reported an error without saying which" };
  const { message, path, extensions } = error;
  return {
    message: typeof message === "string" ? message : "The target reported an error without saying which",
    ...(Array.isArray(path) ? { path } : {}),
    ...(isTree(extensions) ? { extensions } : {}),
  };
}

function readJson({ body }: OutboundAnswer): unknown {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
  if (isDeeper(value, toolAnswerDepthMax)) {
    throw new Failure("upstream_failed", `The answer is JSON nested deeper than ${toolAnswerDepthMax} levels`);
  }
  return value;
}

function foreign({ status, headers }: OutboundAnswer): Failure {
  const type = /^[\w!#$&^.+/-]{1,64}/.exec(headers["content-type"] ?? "")?.[0];
  const what = type === undefined ? "without a content type" : `of type "${type}"`;
  const hint = status === 401 || status === 403 ? "; check the secrets of the service" : "";
  return new Failure(
    "upstream_failed",
    `The endpoint answered with status ${status} and a body ${what} that is no GraphQL answer${hint}`,
  );
}

function isDeeper(value: unknown, depthMax: number): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) return true;
    level = level.flatMap((each) => Object.values(each).filter((child) => typeof child === "object" && child !== null));
  }
  return false;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
