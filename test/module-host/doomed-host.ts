/** A server that has a module compute for ever and is then killed by its test. Arguments: the layer, the module package as JSON. */
import { bubblewrapLayer, permissionLayer } from "../../src/module-host/isolation.ts";
import { openModuleHost } from "../../src/module-host/module-host.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

const [layer, modulePackage] = process.argv.slice(2) as [string, string];
const layers = { bubblewrap: [bubblewrapLayer()], permission: [permissionLayer()], none: [] }[layer];
const silent = () => undefined;
const host = await openModuleHost({
  fetcher: { fetch: () => Promise.reject(new Error("none")), close: async () => {} },
  parameterChecks: { check: async () => {}, close: async () => {} },
  clock: systemClock,
  log: { debug: silent, info: silent, warn: silent, error: silent },
  unsandboxed: true,
  toolTimeoutMs: 60_000,
  layers,
});
const adapter = await host.openAdapter({
  modulePackage: JSON.parse(modulePackage),
  config: {},
  secrets: {},
  onFailed: silent,
});
const { plan } = await adapter.define({ text: "" });
const reference = { hash: "plan", load: async () => plan };
const service = await adapter.hydrate({ serviceId: "s", plan: reference, config: {}, secrets: {} });
const signal = new AbortController().signal;
void service.invoke({ toolId: "loop", parameters: {}, timeoutMs: 60_000, signal }).catch(silent);
setTimeout(() => process.stdout.write("running\n"), 200);
