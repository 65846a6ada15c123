/** A status other than success: nothing behind the server's front door has seen the message. */
export class HttpRefusal extends Error {
  readonly status: number;
  /** The server's own words, unmasked; empty when it had none. */
  readonly words: string;
  /** Whether the message named a session. */
  readonly inSession: boolean;

  constructor(status: number, words: string, inSession: boolean) {
    super(`Status ${status}`);
    this.name = "HttpRefusal";
    this.status = status;
    this.words = words;
    this.inSession = inSession;
  }

  /** The protocol's way to say that the session is not known (any more). */
  get isLostSession(): boolean {
    return this.inSession && this.status === 404;
  }

  /** Servers that keep sessions in a plain map commonly say 400 after a restart; it may as well be the message that they dislike. */
  get mayBeLostSession(): boolean {
    return this.isLostSession || (this.inSession && this.status === 400);
  }
}
