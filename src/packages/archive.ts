/**
 * The bytes of an archive as a stream of checked entries: one gzip stream holding one tar archive, whole, and nothing else. It
 * neither knows a disk nor what the entries are for.
 *
 * 1. Nothing is held but the piece being read (and a long name of at most 4 MiB): what would be too much is refused while it streams.
 * 2. Every byte belongs to it: whatever follows the end of the archive, or of the gzip stream, is refused.
 *    Entries behind an early end mark, as joined archives have them, are entries like any other.
 */
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";
import { Failure, isFailure } from "../errors/failure.ts";
import { packageStreamBytesMax, packageUnpackMs } from "../limits.ts";
import { type ArchiveEntry, blockBytes, checkedEntry, contentEndOf, type TarHeader } from "./archive-entry.ts";
import { refuse } from "./refusal.ts";

/** Takes one entry; the next comes when it is done. The content of a file must be read to its end. */
export type TakeEntry = (entry: ArchiveEntry, content: AsyncIterable<Uint8Array>) => Promise<void>;

interface TarContent extends AsyncIterable<Uint8Array> {
  on(event: "error", listener: () => void): unknown;
}

/** What gunzip hands on at once. */
const pieceBytes = 64 * 1024;
/** Two empty blocks. */
const endMarkBytes = 2 * blockBytes;

/**
 * Settles when the last entry was taken and nothing runs any more.
 * Rejects with Failure invalid_request, too_large or timeout, or with whatever `take` threw.
 */
export async function readArchive(archive: Uint8Array, take: TakeEntry): Promise<void> {
  const gunzip = createGunzip({ chunkSize: pieceBytes });
  const meter = new StreamMeter();
  const extractor = extract();
  const entries = new EntriesInTurn(take);
  extractor.on("entry", (header, content, next) => {
    // The types of the reader are looser than what it gives.
    entries.start(header as unknown as TarHeader, content as TarContent, next);
  });
  try {
    // The reader comes to a halt over some headers; those known are refused, and none may hold the caller for ever.
    const signal = AbortSignal.timeout(packageUnpackMs);
    await pipeline(Readable.from([archive]), gunzip, meter, extractor, { signal });
  } catch (error) {
    await entries.settled();
    throw entries.fault?.error ?? archiveFault(error);
  }
  await entries.settled();
  requireWholeTar(meter, entries.contentEnd);
  requireOneGzipStream(archive, gunzip.bytesWritten, meter.bytes);
}

class EntriesInTurn {
  readonly #take: TakeEntry;
  #taking: Promise<void> = Promise.resolve();
  /** Where the content of the last entry ends in the tar archive. */
  contentEnd = 0;
  /** What `take` threw of its own accord, not because the archive broke off under it. */
  fault: { readonly error: unknown } | undefined;

  constructor(take: TakeEntry) {
    this.#take = take;
  }

  start(header: TarHeader, content: TarContent, next: (error?: Error) => void): void {
    let brokenOff = false;
    content.on("error", () => {
      brokenOff = true;
    });
    this.contentEnd = contentEndOf(header);
    this.#taking = takeOne(header, content, this.#take).then(
      () => next(),
      (error: Error) => {
        if (!brokenOff) this.fault = { error };
        next(error);
      },
    );
  }

  /** A failed archive is only given up when nobody writes any more. */
  settled(): Promise<void> {
    return this.#taking;
  }
}

async function takeOne(header: TarHeader, content: AsyncIterable<Uint8Array>, take: TakeEntry): Promise<void> {
  const entry = checkedEntry(header);
  // An empty path is the package itself, as `tar` writes it for a folder packed from inside.
  if (entry.path !== "") await take(entry, content);
  if (entry.kind === "file") return;
  // Even an empty content has to be read to its end.
  for await (const _ of content);
}

/** Counts what was unpacked, stops when it is too much, and remembers where the last byte that is not zero ended. */
class StreamMeter extends Transform {
  bytes = 0;
  meaningfulEnd = 0;

  override _transform(
    piece: Uint8Array,
    _encoding: string,
    done: (error: Error | null, piece?: Uint8Array) => void,
  ): void {
    const end = meaningfulEnd(piece);
    if (end > 0) this.meaningfulEnd = this.bytes + end;
    this.bytes += piece.length;
    if (this.bytes <= packageStreamBytesMax) done(null, piece);
    else done(new Failure("too_large", `The archive unpacks to more than the ${packageStreamBytesMax} bytes allowed`));
  }
}

function meaningfulEnd(piece: Uint8Array): number {
  let end = piece.length;
  while (end > 0 && piece[end - 1] === 0) end -= 1;
  return end;
}

function requireWholeTar({ bytes, meaningfulEnd }: StreamMeter, contentEnd: number): void {
  if (meaningfulEnd > contentEnd) refuse("The archive has something after its last entry");
  if (bytes < contentEnd + endMarkBytes) refuse("The archive is cut off: its end mark is missing");
}

/** The stream ends with its length. Gunzip itself passes over zeros behind it, and over the border to a second stream. */
function requireOneGzipStream(archive: Uint8Array, bytesRead: number, bytesUnpacked: number): void {
  const { buffer, byteOffset, byteLength } = archive;
  const length = new DataView(buffer, byteOffset, byteLength).getUint32(byteLength - 4, true);
  if (bytesRead !== byteLength || length !== bytesUnpacked) refuse("The archive has something after its gzip stream");
}

/** Errors of zlib carry codes, those of the tar reader only a message. */
function archiveFault(error: unknown): Failure {
  if (isFailure(error)) return error;
  if (error instanceof Error && error.name === "AbortError") {
    return new Failure("timeout", `Unpacking the archive takes more than the ${packageUnpackMs} ms allowed`, {
      cause: error,
    });
  }
  return new Failure("invalid_request", faultText(error as NodeJS.ErrnoException), { cause: error });
}

function faultText({ code, message }: NodeJS.ErrnoException): string {
  if (code === "Z_BUF_ERROR") return "The archive is cut off";
  if (code?.startsWith("Z_")) return "The archive is not a gzip file, or is damaged";
  if (message === "Unexpected end of data") return "The archive is cut off within an entry";
  return "The archive does not hold a tar archive, or is damaged";
}
