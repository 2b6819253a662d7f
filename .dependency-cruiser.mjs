/**
 * Owns the direction of dependencies: contracts ← kernel ← domain libraries' users ← services ← apps, and no
 * service imports a service. Run by scripts/check-boundaries.mjs, which also proves that files were looked at.
 *
 * A workspace import resolves into the other package's dist/ when that is built and stays `@mortise/<name>`
 * when it is not; each rule names both spellings so that it does not depend on the build.
 */
const services = "archiver|dashboard|proxy|sandbox-manager|scheduler|trainer|verifier";
const libraries = "capture|dialects|rendering|harness|policy|objectives|evaluation|tasks|grading";
const packageNamed = (names) => `^(packages/(${names})/|@mortise/(${names})(/|$))`;
const modules = (pattern) => `(^|node_modules/)(${pattern})`;

export default {
  forbidden: [
    {
      name: "service-imports-service",
      comment: "Services meet over NATS and gRPC only.",
      severity: "error",
      from: { path: "^services/([^/]+)/" },
      to: { path: `^(services/|@mortise/(${services})(/|$))`, pathNot: "^services/$1/" },
    },
    {
      name: "package-imports-service",
      comment: "Packages are below services and applications.",
      severity: "error",
      from: { path: "^packages/" },
      to: { path: `^(services/|apps/|@mortise/(${services}|cli|agent-runtime)(/|$))` },
    },
    {
      name: "service-imports-app",
      severity: "error",
      from: { path: "^services/" },
      to: { path: "^(apps/|@mortise/(cli|agent-runtime)(/|$))" },
    },
    {
      name: "app-imports-app",
      comment: "The agent runtime runs where no other application is.",
      severity: "error",
      from: { path: "^apps/([^/]+)/" },
      to: { path: "^(apps/|@mortise/(cli|agent-runtime)(/|$))", pathNot: "^apps/$1/" },
    },
    {
      name: "contracts-do-io",
      comment: "Contracts are read by the browser too: no module of Node.",
      severity: "error",
      from: { path: "^packages/contracts/src/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "contracts-depend-upwards",
      severity: "error",
      from: { path: "^packages/contracts/src/" },
      to: { path: "^(packages/|@mortise/)", pathNot: "^packages/contracts/" },
    },
    {
      name: "kernel-knows-a-domain",
      comment: "The kernel knows no domain noun: of the project it may import contracts only.",
      severity: "error",
      from: { path: "^packages/kernel/src/" },
      to: { path: "^(packages/|@mortise/)", pathNot: "^(packages/(kernel|contracts)/|@mortise/contracts)" },
    },
    {
      name: "library-does-transport",
      comment: "Domain libraries are pure: no bus, no RPC, no service runtime.",
      severity: "error",
      from: { path: `^packages/(${libraries})/src/` },
      to: { path: `${packageNamed("kernel")}|${modules("@nats-io/|@grpc/")}` },
    },
    {
      name: "production-imports-testkit",
      severity: "error",
      from: { path: "^(packages|services|apps)/[^/]+/src/", pathNot: "^packages/testkit/" },
      to: { path: packageNamed("testkit") },
    },
    {
      name: "harness-knows-mortise",
      comment:
        "What runs as a harness is a third-party program that happens to live here; its adapter is ours.",
      severity: "error",
      from: { path: "^harnesses/[^/]+/", pathNot: "^harnesses/[^/]+/(adapter\\.ts$|test/adapter\\.)" },
      to: { path: "^(packages/|services/|apps/|@mortise/)" },
    },
    {
      name: "adapter-knows-more-than-harnesses",
      comment: "Adapters are data about a harness: they need the interface and the error catalogue.",
      severity: "error",
      from: { path: "^harnesses/([^/]+\\.ts$|[^/]+/adapter\\.ts$)" },
      to: {
        path: "^(packages/|services/|apps/|@mortise/)",
        pathNot: "^(packages/(harness|contracts)/|@mortise/(harness|contracts)(/|$))",
      },
    },
    {
      name: "circular",
      comment: "A cycle of types is erased when compiled; one of values decides what is undefined at start.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: ["node_modules", "/dist/"] },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["types", "import", "node", "default"],
    },
  },
};
