/**
 * How a channel finds its target's addresses: whenever it wants to connect, by asking the one address judge of the server. So every
 * address dialled was approved, a target that moves is judged again, and the library's own look-ups are never used.
 *
 * The library asks again the moment it hears of a failure, so pauses between look-ups are made here.
 */
import grpc from "@grpc/grpc-js";
import { grpcReconnectMaxMs, grpcReconnectMinMs } from "../../limits.ts";

/** What a channel's resolver is given, by this channel option. */
export interface Judging {
  approve(): Promise<readonly string[]>;
  readonly port: number;
  /** Runs `action` once after a while; the answer cancels it. */
  after(delayMs: number, action: () => void): () => void;
}

/** Targets of this scheme are resolved here: `judged:host:port`. */
export const judgedScheme = "judged";
export const judgingOption = "troupe.judging";

type Found = Parameters<grpc.experimental.ResolverListener>[0];

class JudgedResolver implements grpc.experimental.Resolver {
  readonly #listener: grpc.experimental.ResolverListener;
  readonly #judging: Judging;
  /** Of the look-up whose answer counts; one that was given up reports nothing. */
  #current: object | undefined;
  #endPause: (() => void) | undefined;
  #pauseMs = grpcReconnectMinMs;
  #askedMeanwhile = false;

  constructor(
    _target: grpc.experimental.GrpcUri,
    listener: grpc.experimental.ResolverListener,
    options: grpc.ChannelOptions,
  ) {
    this.#listener = listener;
    this.#judging = options[judgingOption] as Judging;
  }

  /** Also what the server's certificate is held against. */
  static getDefaultAuthority(target: grpc.experimental.GrpcUri): string {
    return target.path;
  }

  updateResolution(): void {
    if (this.#current !== undefined) return;
    if (this.#endPause === undefined) this.#lookUp();
    else this.#askedMeanwhile = true;
  }

  destroy(): void {
    this.#current = undefined;
    this.#endPause?.();
    this.#endPause = undefined;
    this.#askedMeanwhile = false;
  }

  #lookUp(): void {
    const mine = {};
    this.#current = mine;
    const { port } = this.#judging;
    this.#judging.approve().then(
      (hosts) => {
        // The library would wait for ever with an empty list.
        if (hosts.length === 0) {
          this.#report(mine, unavailable("Its name has no address"));
          return;
        }
        const endpoints = hosts.map((host) => ({ addresses: [{ host, port }] }));
        this.#report(mine, grpc.experimental.statusOrFromValue(endpoints));
      },
      (error: unknown) =>
        this.#report(mine, unavailable(error instanceof Error ? error.message : "Its address could not be found")),
    );
  }

  #report(asked: object, found: Found): void {
    if (this.#current !== asked) return;
    this.#current = undefined;
    this.#pauseMs = found.ok ? grpcReconnectMinMs : Math.min(this.#pauseMs * 2, grpcReconnectMaxMs);
    this.#endPause = this.#judging.after(this.#pauseMs, () => {
      this.#endPause = undefined;
      if (!this.#askedMeanwhile) return;
      this.#askedMeanwhile = false;
      this.#lookUp();
    });
    this.#listener(found, {}, null, "");
  }
}

function unavailable(details: string): Found {
  return grpc.experimental.statusOrFromError({ code: grpc.status.UNAVAILABLE, details });
}

grpc.experimental.registerResolver(judgedScheme, JudgedResolver);
