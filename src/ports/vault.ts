/** Keeps secrets unreadable at rest, and tells when an envelope is not what was sealed. */
export interface SealContext {
  /** Kind of the record the secret belongs to: registry, service, module. */
  readonly kind: string;
  /** Its id. */
  readonly id: string;
  /** The field of the record. */
  readonly field: string;
}

export interface Vault {
  /** An envelope, as text, that opens with the same context only. Never twice the same. */
  seal(plaintext: string, context: SealContext): string;
  /** @throws Failure internal when the envelope was changed, belongs elsewhere, or its key is not known. */
  open(envelope: string, context: SealContext): string;
  /** Whether the envelope was written with the current key; false is a reason to seal again. */
  isCurrent(envelope: string): boolean;
}
