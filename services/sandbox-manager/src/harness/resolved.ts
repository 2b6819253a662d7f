/**
 * Owns what a harness of the site file is: its adapter, where the adapter's folder lies, and what the site adds.
 * Obtains nothing and starts nothing.
 */
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { CommandHarness, commandAdapter, type HarnessAdapter, type WireApi } from "@mortise/harness";
import { harnessFolder, harnessNamed } from "@mortise/harnesses";

/** One that runs here; those of remote runtimes are remote/. */
export type HarnessSite = Exclude<SiteConfig["harness"][string], { remote: unknown }>;

export interface ResolvedHarness {
  /** As the site file names it. */
  readonly name: string;
  readonly adapter: HarnessAdapter;
  /** The adapter's own folder, or what the operator installed. */
  readonly folder: string;
  /** Whether the operator installed it: a configured command. */
  readonly isInstalled: boolean;
  readonly wireApi: WireApi;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  /** The site's own variables; they win over the adapter's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** @throws MortiseError MORTISE_HARNESS_UNKNOWN, MORTISE_CONFIG_INVALID (a model API the harness does not speak) */
export function resolveHarness(name: string, site: HarnessSite): ResolvedHarness {
  const { contextTokens, maxOutputTokens } = site;
  if (!("adapter" in site)) {
    const { directory, contextTokens: _, maxOutputTokens: __, ...command } = site;
    const adapter = commandAdapter(CommandHarness.parse({ name, ...command }));
    return {
      name,
      adapter,
      folder: directory,
      isInstalled: true,
      wireApi: adapter.wireApis[0],
      contextTokens,
      maxOutputTokens,
      environment: {},
    };
  }
  const adapter = harnessNamed(site.adapter);
  return {
    name,
    adapter,
    folder: harnessFolder(adapter.name),
    isInstalled: false,
    wireApi: wireApiOf(name, adapter, site.wireApi),
    contextTokens,
    maxOutputTokens,
    environment: site.environment,
  };
}

function wireApiOf(name: string, { wireApis }: HarnessAdapter, asked: WireApi | undefined): WireApi {
  if (asked === undefined) return wireApis[0];
  if (wireApis.includes(asked)) return asked;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `harness.${name}.wireApi is ${asked}; this harness speaks ${wireApis.join(", ")}.`,
    fix: `Use one of: ${wireApis.join(", ")}.`,
    detail: { field: `harness.${name}.wireApi` },
  });
}
