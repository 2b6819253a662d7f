/** Owns what the parts of a test cluster are told: their configuration files. Starts nothing. */
import path from "node:path";
import type { Parts } from "./parts.js";

const ADMIN_TOKEN = "admin-token";
/** Of the account that the project's own manifest gives its rights. */
const SERVICE_ACCOUNT_TOKEN = "manager-token";

export interface ClusterFacts {
  readonly directory: string;
  readonly parts: Parts;
  readonly pauseImage: string;
  readonly bridge: string;
  readonly nodeAddress: string;
  readonly apiPort: number;
  readonly kubeletPort: number;
  /** Control group below which all pods are. */
  readonly group: string;
}

/** By name, below the cluster's directory. */
export function clusterFiles(facts: ClusterFacts): Readonly<Record<string, string>> {
  const { directory, apiPort } = facts;
  return {
    "tokens.csv": [
      `${ADMIN_TOKEN},admin,admin,system:masters`,
      `${SERVICE_ACCOUNT_TOKEN},system:serviceaccount:mortise:sandbox-manager,manager,`,
      "",
    ].join("\n"),
    kubeconfig: kubeconfig(apiPort),
    "containerd.toml": containerdConfig(facts),
    "kubelet.yaml": kubeletConfig(facts),
    "cni/10-test.conflist": JSON.stringify(cniConfig(facts, path.join(directory, "addresses"))),
  };
}

function kubeconfig(apiPort: number): string {
  const user = (name: string, token: string) => ({ name, user: { token } });
  const context = (name: string) => ({ name, context: { cluster: "test", user: name } });
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "test",
        cluster: { server: `https://127.0.0.1:${apiPort}`, "insecure-skip-tls-verify": true },
      },
    ],
    users: [user("admin", ADMIN_TOKEN), user("manager", SERVICE_ACCOUNT_TOKEN)],
    contexts: [context("admin"), context("manager")],
    "current-context": "admin",
  });
}

function containerdConfig({ directory, parts, pauseImage }: ClusterFacts): string {
  return `version = 2
root = "${directory}/containerd/root"
state = "${directory}/containerd/state"
[grpc]
  address = "${directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${parts.cniDirectory}"
    conf_dir = "${directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;
}

function kubeletConfig({ directory, kubeletPort, nodeAddress, group }: ClusterFacts): string {
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: nodeAddress,
    port: kubeletPort,
    healthzPort: 0,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${group}`,
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
    resolvConf: "",
    // The API has no limit of processes for one pod; a node has one for each of its pods.
    podPidsLimit: 64,
    containerRuntimeEndpoint: `unix://${directory}/containerd.sock`,
    podLogsDir: `${directory}/logs-of-pods`,
  });
}

/** Pods reach this machine and each other through a bridge, as they would in a cluster. */
function cniConfig({ bridge }: ClusterFacts, dataDir: string): object {
  return {
    cniVersion: "0.4.0",
    name: "mortise-test",
    plugins: [
      {
        type: "bridge",
        bridge,
        isGateway: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "10.99.0.0/16" }]],
          routes: [{ dst: "0.0.0.0/0" }],
          dataDir,
        },
      },
    ],
  };
}
