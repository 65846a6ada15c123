/** Manifests against the schemas of the API server, by the generated validators of `kubernetes-models`. */

import { validate as statefulSet } from "kubernetes-models/_schemas/IoK8sApiAppsV1StatefulSet";
import { validate as configMap } from "kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap";
import { validate as namespace } from "kubernetes-models/_schemas/IoK8sApiCoreV1Namespace";
import { validate as secret } from "kubernetes-models/_schemas/IoK8sApiCoreV1Secret";
import { validate as service } from "kubernetes-models/_schemas/IoK8sApiCoreV1Service";
import { validate as serviceAccount } from "kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount";
import { validate as networkPolicy } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy";
import { validate as podDisruptionBudget } from "kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget";

interface Validator {
  (data: unknown): boolean;
  errors?: readonly { readonly instancePath: string; readonly message?: string; readonly keyword: string }[] | null;
}

const validators: Readonly<Record<string, unknown>> = {
  "apps/v1 StatefulSet": statefulSet,
  "networking.k8s.io/v1 NetworkPolicy": networkPolicy,
  "policy/v1 PodDisruptionBudget": podDisruptionBudget,
  "v1 ConfigMap": configMap,
  "v1 Namespace": namespace,
  "v1 Secret": secret,
  "v1 Service": service,
  "v1 ServiceAccount": serviceAccount,
};

/** Nothing when the API server would take it as it is. */
export function manifestFaults(manifest: { readonly apiVersion: string; readonly kind: string }): readonly string[] {
  const validate = validators[`${manifest.apiVersion} ${manifest.kind}`] as Validator | undefined;
  if (validate === undefined) return [`no schema for ${manifest.apiVersion} ${manifest.kind}`];
  const unread = new Set<string>();
  if (!validate(watched(manifest, "", unread))) {
    return (validate.errors ?? []).map(({ instancePath, keyword }) => `${instancePath}: ${keyword}`);
  }
  return [...unread].map((path) => `${path}: unknown field`);
}

/** The schemas let unknown fields pass. Their validators read every field that they know, so a field nobody has read is a misspelt one. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const key of Object.keys(value)) unread.add(`${path}/${key}`);
  return new Proxy(value, {
    get(target, key) {
      const found: unknown = Reflect.get(target, key);
      if (typeof key !== "string" || !Object.hasOwn(target, key)) return found;
      unread.delete(`${path}/${key}`);
      return watched(found, `${path}/${key}`, unread);
    },
  });
}
