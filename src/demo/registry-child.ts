/** The development registry as a user starts it, `troupe dev-registry`, for the part of the demo that installs from one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Reading a few hundred files on a cold machine. */
const startMsMax = 30_000;

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/** The registry's credentials for development: they protect nothing. */
export const registryClient = { clientId: "dev-client", clientSecret: "dev-secret" } as const;

export interface RegistryChild {
  /** What to register. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Rejects when it ends, or does not listen in time. */
export async function startRegistry(): Promise<RegistryChild> {
  const settings = { SERVICE_DEV_REGISTRY_PORT: "0", SERVICE_DEV_REGISTRY_AUTH_MODE: "oauth2" };
  const child = spawn(process.execPath, [main, "dev-registry"], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "close");
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  const listening = new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve((JSON.parse(line) as { url: string }).url));
  });
  const late = AbortSignal.timeout(startMsMax);
  const failed = Promise.race([ended, once(late, "abort")]).then(() => {
    throw new Error("The development registry does not listen");
  });
  try {
    return { url: await Promise.race([listening, failed]), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
