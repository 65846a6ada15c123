/** The client of one command. Loaded when a command first talks to the server: it brings all of the protocol along. */
import { fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { createTroupeClient, type TroupeClient } from "../client/client.ts";
import { troupeServices } from "../client/troupe-services.ts";
import type { Connection } from "./connection.ts";
import type { Item } from "./item.ts";
import { plainMessages } from "./plain-message.ts";

export interface Session {
  readonly client: TroupeClient;
  plain(message: Message): Item;
  /** JSON as a field of a request. */
  value(json: unknown): Value;
  timestamp(date: Date): Timestamp;
}

export function openSession({ url, apiKey, tls }: Connection): Session {
  return {
    client: createTroupeClient({ baseUrl: url, apiKey, tls }),
    plain: plainMessages(troupeServices),
    value: (json) => fromJson(ValueSchema, json as JsonValue),
    timestamp: timestampFromDate,
  };
}
