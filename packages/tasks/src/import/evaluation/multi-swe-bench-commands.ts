/**
 * Owns which repositories of Multi-SWE-bench can be graded from their record: those whose program below
 * multi_swe_bench/harness/repos/ reads names as one of our parsers does, and whose images run the same commands in
 * /home/run.sh as in /home/test-run.sh, which applies the test patch first. All were compared, file by file; the
 * repositories of other languages are read by programs of their own, which drop, join and rename tests.
 */
export interface MultiCommand {
  readonly language: "go" | "rust" | "c++";
  readonly parser: string;
}

const GO = [
  ...["beego/beego", "caddyserver/caddy", "cli/cli", "concourse/concourse", "etcd-io/etcd", "fatedier/frp"],
  ...[
    "gin-gonic/gin",
    "go-gorm/gorm",
    "gohugoio/hugo",
    "grpc/grpc-go",
    "istio/istio",
    "jesseduffield/lazygit",
  ],
  ...["junegunn/fzf", "labstack/echo", "nats-io/nats-server", "nektos/act", "prometheus/prometheus"],
  ...["syncthing/syncthing", "zeromicro/go-zero"],
];

const RUST = [
  ...[
    "alacritty/alacritty",
    "bee-san/rustscan",
    "burntsushi/ripgrep",
    "clap-rs/clap",
    "fish-shell/fish-shell",
  ],
  ...["helix-editor/helix", "nushell/nushell", "rayon-rs/rayon", "rusqlite/rusqlite", "rust-lang/mdbook"],
  ...["serde-rs/serde", "sharkdp/bat", "sharkdp/fd", "tokio-rs/bytes", "tokio-rs/tokio", "tokio-rs/tracing"],
];

const CPP = ["fmtlib/fmt", "nlohmann/json", "simdjson/simdjson"];

const COMMANDS: ReadonlyMap<string, MultiCommand> = new Map([
  ...GO.map((repo): [string, MultiCommand] => [repo, { language: "go", parser: "gotest" }]),
  ...RUST.map((repo): [string, MultiCommand] => [repo, { language: "rust", parser: "cargo" }]),
  ...CPP.map((repo): [string, MultiCommand] => [repo, { language: "c++", parser: "ctest" }]),
]);

/** Undefined for a repository that is tested or read in a way of its own. */
export function multiCommandOf(repo: string): MultiCommand | undefined {
  return COMMANDS.get(repo.toLowerCase());
}
