/** What the Kubernetes tests say of the test cluster to a backend. */
import { SiteConfig } from "@mortise/contracts";
import type { KubernetesSetup } from "./global-setup.js";

export type Settings = SiteConfig["sandbox"]["kubernetes"];

/** As the account that the project's own manifest gives its rights. */
export function settingsOf({ kubeconfig, images }: KubernetesSetup, more: Partial<Settings> = {}): Settings {
  const { kubernetes } = SiteConfig.shape.sandbox.parse({
    kubernetes: {
      kubeconfig,
      context: "manager",
      helperImage: images!.helper,
      hostImage: images!.host,
      requestShare: 0.1,
    },
  });
  return { ...kubernetes, ...more };
}
