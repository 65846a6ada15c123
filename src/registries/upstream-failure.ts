/**
 * Whatever a foreign server does wrong is one kind of failure to our callers. The outbound client tells sizes and times apart;
 * passed on as they are, a registry's oversized page would read as if the caller's request were too large.
 */
import { Failure, isFailure } from "../errors/failure.ts";

export async function asUpstream<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    if (isFailure(error) && (error.kind === "too_large" || error.kind === "timeout"))
      throw new Failure("upstream_failed", error.message, { cause: error });
    throw error;
  }
}
