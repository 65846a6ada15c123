/** The child process that reads definition documents, which foreign servers wrote. It sees no secret, and has no business with the network. */
import type { Definition } from "../../ports/adapter.ts";
import { serveWorker } from "../worker/serve-worker.ts";
import { defineService } from "./define-service.ts";
import { readAddress } from "./read-document.ts";
import type { ServerAddress } from "./server-address.ts";

export interface DocumentInput {
  readonly text: string;
}

function define({ text }: DocumentInput): Definition {
  return defineService(text);
}

function address({ text }: DocumentInput): ServerAddress {
  return readAddress(text);
}

serveWorker({ define, address });
