/** Owns what the runtime says of itself to agents of the A2A protocol, old and new. */
import type { AgentCard } from "@a2a-js/sdk";
import { INVOCATION_EXTENSION } from "@mortise/contracts";

export const RUNTIME_NAME = "mortise-agent-runtime";
export const RUNTIME_VERSION = "0.1.0";
const JSON_MEDIA_TYPE = "application/json";
/** Both are served at one address; the header of a call says which one it is. */
const PROTOCOL_VERSIONS = ["1.0", "0.3"];

export function agentCard(url: string, harnesses: readonly string[]): AgentCard {
  return {
    name: RUNTIME_NAME,
    description:
      "Runs one coding harness on one task image against a model it is given, and hands the change back.",
    version: RUNTIME_VERSION,
    supportedInterfaces: PROTOCOL_VERSIONS.map((protocolVersion) => ({
      url,
      protocolBinding: "JSONRPC",
      protocolVersion,
      tenant: "",
    })),
    provider: undefined,
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        {
          uri: INVOCATION_EXTENSION,
          description: "Messages carry one data part in this format, and an id is run once.",
          required: true,
          params: { harnesses: [...harnesses] },
        },
      ],
    },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { scheme: "Bearer", bearerFormat: "", description: "The runtime's own token." },
        },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: [JSON_MEDIA_TYPE],
    defaultOutputModes: [JSON_MEDIA_TYPE],
    skills: [
      {
        id: "run-harness",
        name: "Run a harness",
        description: `Harnesses here: ${harnesses.join(", ")}.`,
        tags: ["coding"],
        examples: [],
        inputModes: [JSON_MEDIA_TYPE],
        outputModes: [JSON_MEDIA_TYPE],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}
