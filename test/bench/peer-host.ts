/** One peer behind the least HTTP there is: the program in a POST, its output in the answer. `node peer-host.ts PEER` */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type Peer, peers } from "./peers.ts";

const run = await peers[process.argv[2] as Peer]();
const server = createServer(async (request, response) => {
  try {
    const output = await run(await text(request));
    response.writeHead(200, { "content-type": "application/json" }).end(output);
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ event: "listening", http: `http://127.0.0.1:${port}` }));
});
