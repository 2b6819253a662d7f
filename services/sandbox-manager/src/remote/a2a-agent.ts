/**
 * Owns speaking to a runtime by the A2A protocol: its card, a message that becomes a task, the task's updates as a
 * stream, the task asked for by its id when the stream is gone. What states and artifacts mean is a2a-task.ts.
 */
import { type AgentCard, Role, type Task } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import {
  ContentTypeNotSupportedError,
  ExtensionSupportRequiredError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from "@a2a-js/sdk/errors";
import {
  INVOCATION_EXTENSION,
  INVOCATION_SCHEMA,
  type InvocationRequest,
  type InvocationResult,
  MortiseError,
  type RemoteHarness,
  type StartInvocation,
} from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";
import { sleep } from "@mortise/kernel";
import { A2aTask } from "./a2a-task.js";
import { ConnectionBroke, type RemoteAgent, type RemoteHandle, type Watch } from "./agent.js";
import { type Exchange, exchange } from "./bounded-fetch.js";

const legacyCompat = { enabled: true };
/** Of v1.0 and of v0.3: an agent may refuse whoever does not say that it knows the extension. */
const EXTENSION_HEADERS = {
  "a2a-extensions": INVOCATION_EXTENSION,
  "x-a2a-extensions": INVOCATION_EXTENSION,
};
/** By these an agent says that it did not take a message at all. */
const REFUSALS = [
  ContentTypeNotSupportedError,
  ExtensionSupportRequiredError,
  RequestMalformedError,
  UnsupportedOperationError,
  VersionNotSupportedError,
];
/** Whoever named a trial's task before may name it again: the library and servers may coalesce by it. */
const messageId = ({ kind, id }: InvocationRequest) => `${kind}-${id}`;

export class A2aAgent implements RemoteAgent {
  readonly protocol = "a2a";
  readonly url: string;
  readonly #settings: RemoteHarness["remote"];
  readonly #field: string;
  readonly #clock: Clock;

  constructor(settings: RemoteHarness["remote"], field: string, clock: Clock) {
    this.#settings = settings;
    this.#field = field;
    this.#clock = clock;
    this.url = settings.url.replace(/\/+$/, "");
  }

  async look(signal: AbortSignal): Promise<string> {
    return this.#with(signal, async (_client, { name, version }) => `${name} ${version}`);
  }

  start(request: StartInvocation, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    return this.#send(request, watch, signal);
  }

  attach(handle: RemoteHandle, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    const { id, task } = handle;
    if (task === undefined)
      return this.#send({ schema: INVOCATION_SCHEMA, kind: "attach", id }, watch, signal);
    return this.#with(signal, (client) => this.#poll(client, { id, task }, watch, signal));
  }

  async cancel({ id, task }: RemoteHandle, signal: AbortSignal): Promise<void> {
    await this.#with(signal, async (client) => {
      if (task === undefined) {
        const message = { schema: INVOCATION_SCHEMA, kind: "cancel", id } as const;
        await client.sendMessage(sending(message, true), { signal });
        return;
      }
      await client.cancelTask({ tenant: "", id: task, metadata: undefined }, { signal }).catch((error) => {
        if (!(error instanceof TaskNotCancelableError || error instanceof TaskNotFoundError)) throw error;
      });
    });
  }

  async #send(request: InvocationRequest, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    return this.#with(signal, async (client, card) => {
      const task = new A2aTask(request.id, watch);
      if (card.capabilities?.streaming === true)
        for await (const { payload } of client.sendMessageStream(sending(request, false), { signal }))
          task.hear(payload);
      else {
        const answer = await client.sendMessage(sending(request, true), { signal });
        if ("messageId" in answer) task.hear({ $case: "message", value: answer });
        else task.hear({ $case: "task", value: answer });
      }
      if (task.hasEnded) return task.result();
      if (task.name === undefined) throw new ConnectionBroke("the stream ended before it named a task", true);
      return this.#poll(client, { id: request.id, task: task.name }, watch, signal);
    });
  }

  async #poll(
    client: Client,
    { id, task: name }: RemoteHandle & { readonly task: string },
    watch: Watch,
    signal: AbortSignal,
  ): Promise<InvocationResult> {
    for (;;) {
      const task = new A2aTask(id, watch);
      task.hear({ $case: "task", value: await this.#get(client, name, signal) });
      if (task.hasEnded) return task.result();
      await sleep(this.#settings.pollIntervalMs, this.#clock, signal);
    }
  }

  async #get(client: Client, id: string, signal: AbortSignal): Promise<Task> {
    try {
      return await client.getTask({ tenant: "", id, historyLength: 0 }, { signal });
    } catch (error) {
      if (!(error instanceof TaskNotFoundError)) throw error;
      throw new MortiseError({
        code: "MORTISE_HARNESS_REMOTE_LOST",
        message: `the runtime has no task ${id} any more.`,
        cause: error,
      });
    }
  }

  /** A client for one exchange, made of the card as it is now. Whatever it throws is told apart here. */
  async #with<T>(signal: AbortSignal, act: (client: Client, card: AgentCard) => Promise<T>): Promise<T> {
    const { tokenFile, maxAnswerBytes } = this.#settings;
    const http = exchange({
      field: this.#field,
      tokenFile,
      maxAnswerBytes,
      headers: EXTENSION_HEADERS,
      signal,
    });
    let isCardRead = false;
    try {
      const resolver = new DefaultAgentCardResolver({ fetchImpl: http.fetch, legacyCompat });
      const card = await resolver.resolve(this.#settings.url);
      isCardRead = true;
      this.#assertSpeaks(card);
      return await act(await clientOf(card, http), card);
    } catch (error) {
      const fault = http.fault() ?? error;
      if (fault instanceof MortiseError || fault instanceof ConnectionBroke) {
        // Until the card was read nothing was asked for.
        if (fault instanceof ConnectionBroke && !isCardRead)
          throw new ConnectionBroke(fault.message, false, fault);
        throw fault;
      }
      if (REFUSALS.some((refusal) => fault instanceof refusal))
        throw new MortiseError({
          code: "MORTISE_HARNESS_REMOTE_ANSWER",
          message: `the agent does not take the message: ${(fault as Error).message}.`,
          cause: fault,
        });
      // The runtime spoke, but not to the point; a server in between may have spoken for it.
      throw new ConnectionBroke((fault as Error).message, isCardRead, fault);
    }
  }

  /** Its card must say the format, and lead nowhere else than the site file: tokens go there. */
  #assertSpeaks({ supportedInterfaces, capabilities }: AgentCard): void {
    const { origin } = new URL(this.#settings.url);
    const elsewhere = supportedInterfaces.find(({ url }) => URL.parse(url)?.origin !== origin);
    const problem =
      elsewhere !== undefined
        ? `its card names ${elsewhere.url}, which is not at ${origin}`
        : capabilities?.extensions.some(({ uri }) => uri === INVOCATION_EXTENSION) === true
          ? undefined
          : `its card does not name the extension ${INVOCATION_EXTENSION}`;
    if (problem === undefined) return;
    throw new MortiseError({
      code: "MORTISE_HARNESS_REMOTE_ANSWER",
      message: `the agent at ${this.url} cannot be used: ${problem}.`,
    });
  }
}

async function clientOf(card: AgentCard, { fetch }: Exchange): Promise<Client> {
  const options = { fetchImpl: fetch, legacyCompat };
  const transports = [new JsonRpcTransportFactory(options), new RestTransportFactory(options)];
  return new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports,
      cardResolver: new DefaultAgentCardResolver(options),
    }),
  ).createFromAgentCard(card);
}

function sending(request: InvocationRequest, returnImmediately: boolean) {
  return {
    tenant: "",
    message: {
      messageId: messageId(request),
      contextId: "",
      taskId: "",
      role: Role.ROLE_USER,
      parts: [
        {
          content: { $case: "data" as const, value: request },
          mediaType: "application/json",
          filename: "",
          metadata: undefined,
        },
      ],
      metadata: undefined,
      extensions: [INVOCATION_EXTENSION],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: ["application/json"],
      taskPushNotificationConfig: undefined,
      returnImmediately,
    },
    metadata: undefined,
  };
}
