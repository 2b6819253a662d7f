/** Owns how a site describes the cluster its sandboxes run in. Does not connect to one. */
import { z } from "zod";

const labels = z.record(z.string().min(1), z.string());
const image = z.string().min(1);
const name = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "must be a name as Kubernetes has them");

const Volume = z
  .strictObject({
    directory: z
      .string()
      .startsWith("/")
      .describe("Directory of the sandbox-manager; mounts below it are not copied into the pods."),
    claim: name.optional().describe("Persistent volume claim that holds the same files."),
    hostPath: z
      .string()
      .startsWith("/")
      .optional()
      .describe("Directory of every node that holds the same files."),
  })
  .refine(({ claim, hostPath }) => (claim === undefined) !== (hostPath === undefined), {
    message: "give either claim or hostPath",
  });

const Toleration = z.strictObject({
  key: z.string().optional().describe("Taint that is tolerated; every one when absent."),
  operator: z.enum(["Exists", "Equal"]).default("Exists").describe("How value is compared."),
  value: z.string().optional().describe("Value of the taint, with operator Equal."),
  effect: z
    .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
    .optional()
    .describe("Effect of the taint; every one when absent."),
});

export const KubernetesCluster = z.strictObject({
  kubeconfig: z
    .string()
    .min(1)
    .optional()
    .describe("Kubeconfig file; when absent the pod's own service account, else the default kubeconfig."),
  context: z.string().min(1).optional().describe("Context of the kubeconfig; its current one when absent."),
  namespace: name
    .default("mortise-sandboxes")
    .describe("Namespace of the pods; nothing else should be in it."),
  namePrefix: z
    .string()
    .regex(/^[a-z]([a-z0-9-]{0,20}[a-z0-9])?$/)
    .default("mortise")
    .describe("Begins the name of every pod."),
  labels: labels.default({}).describe("Labels given to every pod, besides ours."),
  annotations: labels
    .default({})
    .describe("Annotations given to every pod, for a lazy snapshotter or an admission hook for instance."),
  helperImage: image
    .optional()
    .describe(
      "Image built from deploy/kubernetes/pod-helper.Dockerfile; required by the kubernetes backend.",
    ),
  hostImage: image
    .optional()
    .describe("Image for tasks that name none: it needs node, git and what tests of such tasks run."),
  imagePullPolicy: z
    .enum(["IfNotPresent", "Always", "Never"])
    .default("IfNotPresent")
    .describe("When nodes ask the registry."),
  imagePullSecrets: z.array(name).default([]).describe("Secrets of the namespace with registry logins."),
  runtimeClass: name
    .optional()
    .describe("RuntimeClass: gVisor, Kata, or a handler with a lazy snapshotter such as Nydus or stargz."),
  seccomp: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Seccomp profile below the kubelet's seccomp directory; the runtime's default one when absent.",
    ),
  nodeSelector: labels.default({}).describe("Labels a node must have."),
  tolerations: z.array(Toleration).default([]).describe("Taints of nodes that sandboxes tolerate."),
  priorityClass: name.optional().describe("PriorityClass of the pods."),
  requestShare: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      "Share of the limits of cpu, memory and disk that is requested; below 1 nodes are overcommitted.",
    ),
  startTimeoutMs: z
    .int()
    .min(1000)
    .default(300_000)
    .describe("Time a pod may take until it runs, pulling included, milliseconds."),
  deadlineMs: z
    .int()
    .min(60_000)
    .default(14_400_000)
    .describe("Time after which the cluster ends a pod whatever became of its manager, milliseconds."),
  networkPolicy: z
    .boolean()
    .default(true)
    .describe("Keep a NetworkPolicy that denies the pods everything, besides what is closed inside them."),
  volumes: z.array(Volume).default([]).describe("Directories that pods mount instead of getting a copy."),
  maxCopiedBytes: z
    .int()
    .min(0)
    .default(1_073_741_824)
    .describe("Bytes of mounts copied into one pod; more is refused."),
});
