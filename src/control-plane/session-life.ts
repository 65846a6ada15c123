/**
 * How long a connection of HTTP/2 lasts. A client that went without a word (power, network, a proxy that forgot it) would keep its streams
 * and its place for ever, and so would one that only came to sit there.
 *
 * 1. When nothing has arrived for a while the client is asked (PING); without an answer the connection is cut.
 * 2. After a longer while it is told to come again (GOAWAY): calls and streams in flight go on, new ones need a new connection.
 * 3. When the session is over, by whoever's GOAWAY, the client has as long to close its end of the connection before that is cut.
 */
import type { ServerHttp2Session } from "node:http2";
import { sessionIdleMs, sessionPingAnsweredMs, sessionQuietMs } from "../limits.ts";
import type { Clock } from "../ports/clock.ts";

export function watchSession(session: ServerHttp2Session, clock: Clock): void {
  let cancel = clock.after(sessionQuietMs, look);
  // Itself: `session.socket` is a stand-in that throws from the moment the session is over, when the connection often is not.
  const socket = session.socket.once("close", () => cancel());
  let bytesSeen = socket.bytesRead;
  let lastHeardAt = clock.monotonic();

  function look(): void {
    if (session.destroyed) {
      leaveOrBeCut();
      return;
    }
    if (socket.bytesRead !== bytesSeen) {
      lastHeardAt = clock.monotonic();
      lookAgain();
      return;
    }
    if (clock.monotonic() - lastHeardAt >= sessionIdleMs && !session.closed) session.close();
    if (session.destroyed) leaveOrBeCut();
    else ask();
  }

  function ask(): void {
    cancel = clock.after(sessionPingAnsweredMs, () => {
      session.destroy();
      // A session that was closing ends its side only, for a client to answer that is not there.
      socket.destroy();
    });
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

  /** The last bytes may still be on their way to it. */
  function leaveOrBeCut(): void {
    cancel = clock.after(sessionQuietMs, () => socket.destroy());
  }
}
