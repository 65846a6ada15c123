/** Where a GraphQL service is: an absolute http or https URL without credentials in it. */
import { Failure } from "../../errors/failure.ts";
import { urlCharactersMax } from "../../limits.ts";

/** @throws Failure invalid_request. The message never repeats the URL: it may hold what it should not. */
export function readEndpoint(value: unknown, base?: string | undefined): string {
  if (typeof value !== "string" || value.length > urlCharactersMax || !URL.canParse(value, base)) {
    throw new Failure("invalid_request", 'The "endpoint" of a GraphQL service must be an absolute http or https URL');
  }
  const url = new URL(value, base);
  if (!/^https?:$/.test(url.protocol)) {
    throw new Failure("invalid_request", 'The "endpoint" of a GraphQL service must be an http or https URL');
  }
  if (url.username !== "" || url.password !== "") {
    throw new Failure("invalid_request", 'The "endpoint" of a GraphQL service may not hold a user name or password');
  }
  url.hash = "";
  return url.href;
}

/** For error texts: queries of URLs hold keys now and then. */
export function shownEndpoint(endpoint: string): string {
  const { origin, pathname } = new URL(endpoint);
  return `${origin}${pathname}`;
}
