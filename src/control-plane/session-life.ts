/**
 * How long a connection of HTTP/2 lasts. A client that went without a word (power, network, a proxy that forgot it) would keep its streams
 * and its place for ever, and so would one that only came to sit there.
 *
 * 1. When nothing has arrived for a while the client is asked (PING); without an answer the connection is cut.
 * 2. After a longer while it is told to come again (GOAWAY): calls and streams in flight go on, new ones need a new connection.
 */
import type { ServerHttp2Session } from "node:http2";
import { sessionIdleMs, sessionPingAnsweredMs, sessionQuietMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export function watchSession(session: ServerHttp2Session, clock: Clock): void {
  const { socket } = session;
  let bytesSeen = socket.bytesRead;
  let lastHeardAt = clock.monotonic();
  let cancel = clock.after(sessionQuietMs, look);
  session.once("close", () => cancel());

  function look(): void {
    if (socket.bytesRead !== bytesSeen) {
      lastHeardAt = clock.monotonic();
      lookAgain();
      return;
    }
    if (clock.monotonic() - lastHeardAt >= sessionIdleMs && !session.closed) session.close();
    if (!session.destroyed) ask();
  }

  function ask(): void {
    cancel = clock.after(sessionPingAnsweredMs, () => session.destroy());
    session.ping((error) => {
      if (error === null) lookAgain();
    });
  }

  /** What has arrived up to now, an answer to our question among it, is no news any more. */
  function lookAgain(): void {
    cancel();
    bytesSeen = socket.bytesRead;
    cancel = clock.after(sessionQuietMs, look);
  }
}
