// A program run from TypeScript, over the control plane.
import { createTroupeClient, ProcessExitState, TroupeError } from "troupe/client";

const client = createTroupeClient({ baseUrl: process.env.TROUPE_GRPC_URL ?? "http://127.0.0.1:8081" });

const { snapshot, output, stdout } = await client.runProcess({
  code: `console.log("thinking"); return { answer: 6 * 7 };`,
});
if (snapshot.exitState === ProcessExitState.SUCCESS) console.log(output, stdout.trim());

const { id } = await client.processes.createProcess({
  code: "return await services.petstore.listPets();",
  ref: "pets",
});
const ended = await client.waitForProcess(id, { timeoutMs: 30_000 });
console.log(ended.error ?? "no error");

try {
  await client.services.getService({ serviceId: "nobody" });
} catch (error) {
  if (!(error instanceof TroupeError)) throw error;
  console.log(error.code, error.message);
}
