/** A real Fetcher for tests: undici to 127.0.0.1, no address judge. */
import { request } from "undici";
import { Failure } from "../../src/errors/failure.ts";
import type { Fetcher } from "../../src/ports/fetcher.ts";

export const loopbackFetcher: Fetcher = {
  async fetch({ method, url, headers, body, bodyBytesMax, timeoutMs, signal }) {
    const deadline = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    const stop = signal ? AbortSignal.any([signal, deadline]) : deadline;
    try {
      const answer = await request(url, { method: method as "GET", headers, body: body ?? null, signal: stop });
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of answer.body) {
        size += chunk.length;
        if (size > bodyBytesMax) throw new Failure("too_large", "The answer is too large");
        chunks.push(chunk);
      }
      const named = Object.entries(answer.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(", ") : String(value),
      ]);
      return { status: answer.statusCode, headers: Object.fromEntries(named), body: Buffer.concat(chunks), url };
    } catch (error) {
      if (error instanceof Failure) throw error;
      if (deadline.aborted) throw new Failure("timeout", `No answer from ${new URL(url).host} within ${timeoutMs} ms`);
      if (signal?.aborted) throw new Failure("cancelled", "The caller went away");
      throw new Failure("upstream_failed", `No connection to ${new URL(url).host}`, { cause: error });
    }
  },
  async close() {},
};
