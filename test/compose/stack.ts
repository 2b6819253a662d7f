/**
 * Owns one `up` of docker-compose.yml under a project name of its own: commands on it, facts about its
 * containers, its removal. Does not judge what it finds.
 */
import { randomBytes } from "node:crypto";
import { composeCommand, type Finished, runCommand } from "../docker/command.js";

/** What `docker inspect` says of a container, as far as the tests read it. */
export interface ContainerFacts {
  readonly Id: string;
  readonly Name: string;
  readonly Config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Labels: Record<string, string>;
  };
  readonly HostConfig: {
    readonly ReadonlyRootfs: boolean;
    readonly CapDrop: readonly string[] | null;
    readonly Privileged: boolean;
    readonly PortBindings: Record<string, unknown> | null;
  };
  readonly State: {
    readonly Status: string;
    readonly ExitCode: number;
    readonly Health?: { readonly Status: string };
  };
  readonly RestartCount: number;
}

export class Stack {
  readonly project = `mortise-test-${randomBytes(4).toString("hex")}`;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
  }

  /** Runs compose and returns however it ended. */
  compose(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Finished> {
    const [command, ...prefix] = composeCommand();
    return runCommand({
      command,
      args: [...prefix, "--project-name", this.project, ...args],
      environment: { ...this.#environment, ...environment },
    });
  }

  async docker(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand({
      command: "docker",
      args,
      environment: this.#environment,
    });
    if (code !== 0) throw new Error(`docker ${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }

  async containers(): Promise<ContainerFacts[]> {
    const ids = lines(await this.docker(["ps", "--all", "--quiet", "--filter", this.#label]));
    return ids.length === 0 ? [] : (JSON.parse(await this.docker(["inspect", ...ids])) as ContainerFacts[]);
  }

  async of(service: string): Promise<ContainerFacts[]> {
    return (await this.containers()).filter((container) => serviceOf(container) === service);
  }

  /** Output of a program inside a container. */
  exec(container: ContainerFacts, argv: readonly string[]): Promise<string> {
    return this.docker(["exec", container.Id, ...argv]);
  }

  /** A metric without labels, from the container's own metrics page. */
  async metric(container: ContainerFacts, name: string): Promise<number> {
    const script =
      "fetch('http://127.0.0.1:9090/metrics').then(r=>r.text()).then(t=>process.stdout.write(t))";
    const line = lines(await this.exec(container, ["node", "-e", script])).find((text) =>
      text.startsWith(`${name} `),
    );
    return Number(line?.slice(name.length));
  }

  /** The last line of `mortise <args> --json`, run with the observer's identity. */
  async mortise(args: readonly string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await this.compose(["run", "--rm", "-T", "mortise", ...args, "--json"]);
    if (code !== 0) throw new Error(`mortise ${args.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(lines(stdout).at(-1) ?? "") as Record<string, unknown>;
  }

  /** Everything the project still has on the engine: ids of containers, names of volumes and networks. */
  async leftovers(): Promise<string[]> {
    const filter = ["--quiet", "--filter", this.#label];
    const listings = await Promise.all([
      this.docker(["ps", "--all", ...filter]),
      this.docker(["volume", "ls", ...filter]),
      this.docker(["network", "ls", ...filter]),
    ]);
    return listings.flatMap(lines);
  }

  get #label(): string {
    return `label=com.docker.compose.project=${this.project}`;
  }
}

export function serviceOf(container: ContainerFacts): string {
  return container.Config.Labels["com.docker.compose.service"] ?? "";
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}
