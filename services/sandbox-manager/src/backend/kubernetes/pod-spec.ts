/**
 * Owns how a pod of ours is described: closed before anything of the task is there, no capability for what runs in it,
 * limits, mounts, and the end the cluster gives it by itself. Does not create it.
 *
 * P1  Containers are started in this order: `close`, the only one with NET_ADMIN, takes the pod's network down and
 *     ends; then `relay`, whose image is ours, and `sandbox`, which is the task's. Nobody can bring it up again.
 * P2  The three share a network and nothing else: not processes, not files but the helper's copy and the mounts, which
 *     the sandbox can only read.
 * P3  What the sandbox's first process and the helper may do (change owners, read everything, kill) commands may not:
 *     the helper takes every capability from what it starts.
 */
import type {
  V1Container,
  V1Pod,
  V1SecurityContext,
  V1Toleration,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";
import { HOST_NAME } from "../runc/etc-files.js";
import { type Limits, SANDBOX_UID, type ScratchVolume } from "../types.js";
import { HELPER_DIRECTORY, HELPER_IN_IMAGE, HELPER_IN_SANDBOX } from "./helper.js";
import type { KubernetesSettings } from "./settings.js";

export const CONTAINER = { close: "close", relay: "relay", sandbox: "sandbox" } as const;
export const LABEL = {
  managedBy: "app.kubernetes.io/managed-by",
  component: "app.kubernetes.io/component",
  owner: "mortise.dev/owner",
} as const;
export const MANAGED_BY = "mortise";
const SANDBOX_ANNOTATION = "mortise.dev/sandbox";
const HELPER_CAPABILITIES = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETPCAP SETUID".split(" ");
/** A static program that sleeps; while it unpacks or relays it needs some more. */
const HELPER_RESOURCES = {
  // What is not requested is requested in the amount of its limit.
  requests: { cpu: "5m", memory: "16Mi", "ephemeral-storage": "16Mi" },
  limits: { memory: "128Mi", "ephemeral-storage": "64Mi" },
};
const MIB = 1024 * 1024;

export interface PodMount {
  readonly target: string;
  /** Where its files are in the cluster already; copied when absent. */
  readonly shared?: {
    readonly volume: { readonly claim?: string | undefined; readonly hostPath?: string | undefined };
    readonly subPath: string;
  };
}

export interface PodFacts {
  readonly name: string;
  readonly owner: string;
  /** Of the sandbox, for people. */
  readonly id: string;
  /** With its digest. */
  readonly image: string;
  readonly limits: Limits;
  readonly mounts: readonly PodMount[];
  readonly scratch: readonly ScratchVolume[];
  readonly settings: KubernetesSettings & { readonly helperImage: string };
}

/** Where the relay has the files of a mount, to be filled before the first command. */
export function mountCopy(at: number): string {
  return `/mounts/${at}`;
}

export function podOf(facts: PodFacts): V1Pod {
  const { name, owner, id, settings } = facts;
  const { runtimeClass, priorityClass } = settings;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      labels: { ...settings.labels, ...selectorLabels(), [LABEL.owner]: owner },
      annotations: { ...settings.annotations, [SANDBOX_ANNOTATION]: id },
    },
    spec: {
      ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
      ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
      restartPolicy: "Never",
      activeDeadlineSeconds: Math.ceil(settings.deadlineMs / 1000),
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: false,
      hostname: HOST_NAME,
      // Nobody answers there: names are in /etc/hosts.
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["127.0.0.1"] },
      nodeSelector: settings.nodeSelector,
      tolerations: settings.tolerations.map(tolerationOf),
      imagePullSecrets: settings.imagePullSecrets.map((secret) => ({ name: secret })),
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      initContainers: [closeContainer(settings)],
      containers: [relayContainer(facts), sandboxContainer(facts)],
      volumes: [{ name: "helper", emptyDir: {} }, ...volumesOf(facts)],
    },
  };
}

/** What every pod of ours carries, whoever owns it. */
export function selectorLabels(): Record<string, string> {
  return { [LABEL.managedBy]: MANAGED_BY, [LABEL.component]: "sandbox" };
}

/** P1 */
function closeContainer({ helperImage, imagePullPolicy }: PodFacts["settings"]): V1Container {
  return {
    name: CONTAINER.close,
    image: helperImage,
    imagePullPolicy,
    command: [HELPER_IN_IMAGE, "close", "/helper/pod-helper"],
    resources: HELPER_RESOURCES,
    securityContext: { ...confined(["NET_ADMIN"]), readOnlyRootFilesystem: true },
    volumeMounts: [{ name: "helper", mountPath: "/helper" }],
  };
}

/** It carries bytes of the agent, so it may do nothing: it is a user without capabilities. */
function relayContainer({ settings, mounts }: PodFacts): V1Container {
  return {
    name: CONTAINER.relay,
    image: settings.helperImage,
    imagePullPolicy: settings.imagePullPolicy,
    command: [HELPER_IN_IMAGE, "idle"],
    resources: {
      ...HELPER_RESOURCES,
      limits: { ...HELPER_RESOURCES.limits, "ephemeral-storage": String(settings.maxCopiedBytes + 64 * MIB) },
    },
    securityContext: {
      ...confined([]),
      runAsUser: SANDBOX_UID,
      runAsGroup: SANDBOX_UID,
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
    },
    volumeMounts: mounts.flatMap(({ shared }, at): V1VolumeMount[] =>
      shared === undefined ? [{ name: `mount-${at}`, mountPath: mountCopy(at) }] : [],
    ),
  };
}

/** P2, P3 */
function sandboxContainer({ image, limits, mounts, scratch, settings }: PodFacts): V1Container {
  const { requestShare, seccomp } = settings;
  const amounts = (share: number) => ({
    cpu: `${Math.ceil(limits.cpus * 1000 * share)}m`,
    memory: String(Math.ceil(limits.memoryBytes * share)),
    "ephemeral-storage": String(Math.ceil(limits.diskBytes * share)),
  });
  return {
    name: CONTAINER.sandbox,
    image,
    imagePullPolicy: settings.imagePullPolicy,
    command: [HELPER_IN_SANDBOX, "idle"],
    workingDir: "/",
    resources: { requests: amounts(requestShare), limits: amounts(1) },
    securityContext: {
      ...confined(HELPER_CAPABILITIES),
      ...(seccomp === undefined ? {} : { seccompProfile: { type: "Localhost", localhostProfile: seccomp } }),
    },
    volumeMounts: [
      { name: "helper", mountPath: HELPER_DIRECTORY, readOnly: true },
      ...mounts.map(({ target, shared }, at) => ({
        name: `mount-${at}`,
        mountPath: target,
        readOnly: true,
        ...(shared === undefined || shared.subPath === "" ? {} : { subPath: shared.subPath }),
      })),
      ...scratch.map(({ target }, at) => ({ name: `scratch-${at}`, mountPath: target })),
    ],
  };
}

function tolerationOf({
  key,
  operator,
  value,
  effect,
}: KubernetesSettings["tolerations"][number]): V1Toleration {
  return {
    operator,
    ...(key === undefined ? {} : { key }),
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect }),
  };
}

function confined(capabilities: readonly string[]): V1SecurityContext {
  return {
    runAsUser: 0,
    runAsGroup: 0,
    privileged: false,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"], ...(capabilities.length === 0 ? {} : { add: [...capabilities] }) },
  };
}

function volumesOf({ mounts, scratch }: PodFacts): V1Volume[] {
  return [
    ...mounts.map(({ shared }, at): V1Volume => {
      const name = `mount-${at}`;
      if (shared?.volume.claim !== undefined)
        return { name, persistentVolumeClaim: { claimName: shared.volume.claim, readOnly: true } };
      if (shared?.volume.hostPath !== undefined)
        return { name, hostPath: { path: shared.volume.hostPath, type: "Directory" } };
      return { name, emptyDir: {} };
    }),
    ...scratch.map(
      ({ bytes }, at): V1Volume => ({
        name: `scratch-${at}`,
        emptyDir: { medium: "Memory", sizeLimit: String(bytes) },
      }),
    ),
  ];
}
