/** A status other than success. */
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

  /**
   * The protocol's word for a session that is lost is 404; servers that keep sessions in a plain map commonly say 400 after a restart.
   * Either may as well be about the message.
   */
  get mayBeLostSession(): boolean {
    return this.inSession && (this.status === 404 || this.status === 400);
  }
}
