/**
 * Connections, kept per origin and address: a request can only travel over one that was dialled to the address judged for it.
 * Name checks of TLS still go by the host of the URL. Proxies of the environment play no part.
 */
import { LRUCache } from "lru-cache";
import { buildConnector, Pool } from "undici";
import {
  outboundConnectionsMax,
  outboundConnectMs,
  outboundHeaderBytesMax,
  outboundIdleMs,
  outboundPoolsMax,
} from "../limits.ts";

export interface Pools {
  get(origin: string, address: string): Pool;
  /** Ends connections at once, also busy ones. */
  destroy(): Promise<void>;
}

export function openPools(): Pools {
  const pools = new LRUCache<string, Pool>({
    max: outboundPoolsMax,
    // Requests under way on it finish: each has its own deadline.
    dispose: (pool, _key, reason) => {
      if (reason === "evict") void pool.close();
    },
  });
  // An environment variable can switch verification off elsewhere; not here.
  const connector = buildConnector({ timeout: outboundConnectMs, rejectUnauthorized: true, allowH2: false });
  return {
    get(origin, address) {
      const key = `${origin} ${address}`;
      const pool = pools.get(key) ?? openPool(origin, address, connector);
      pools.set(key, pool, { noDisposeOnSet: true });
      return pool;
    },
    async destroy() {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.destroy()));
    },
  };
}

function openPool(origin: string, address: string, connector: buildConnector.connector): Pool {
  return new Pool(origin, {
    connect: (options: buildConnector.Options, callback: buildConnector.Callback) =>
      connector({ ...options, hostname: address }, callback),
    connections: outboundConnectionsMax,
    keepAliveTimeout: outboundIdleMs,
    keepAliveMaxTimeout: outboundIdleMs,
    maxHeaderSize: outboundHeaderBytesMax,
    // The one deadline of the exchange covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
