/**
 * Owns what the tools of the harnesses are for, by name. A test holds it against the adapters' own vocabularies and
 * against every tool the recordings offer. Does not look into shell commands (shell-command.ts).
 */

export const CATEGORIES = [
  "read",
  "search",
  "edit",
  "run",
  "test",
  "delegate",
  "plan",
  "web",
  "finish",
  "other",
] as const;

export type ToolCategory = (typeof CATEGORIES)[number];

type Tools = Readonly<Record<string, ToolCategory>>;

/** By adapter. A tool that is not listed is `other`. */
const HARNESS_TOOLS: Readonly<Record<string, Tools>> = {
  mini: { edit: "edit", test: "test" },
  "claude-code": {
    Read: "read",
    Glob: "search",
    Grep: "search",
    LS: "search",
    ToolSearch: "search",
    Write: "edit",
    Edit: "edit",
    MultiEdit: "edit",
    NotebookEdit: "edit",
    Bash: "run",
    Monitor: "run",
    Agent: "delegate",
    Task: "delegate",
    ListAgents: "delegate",
    SendMessage: "delegate",
    Workflow: "delegate",
    TodoWrite: "plan",
    TaskCreate: "plan",
    TaskGet: "plan",
    TaskList: "plan",
    TaskStop: "plan",
    TaskUpdate: "plan",
    WebFetch: "web",
    WebSearch: "web",
  },
  codex: {
    view_image: "read",
    apply_patch: "edit",
    exec_command: "run",
    write_stdin: "run",
    shell: "run",
    multi_agent_v1__spawn_agent: "delegate",
    multi_agent_v1__wait_agent: "delegate",
    multi_agent_v1__send_input: "delegate",
    multi_agent_v1__resume_agent: "delegate",
    multi_agent_v1__close_agent: "delegate",
    update_plan: "plan",
    create_goal: "plan",
    get_goal: "plan",
    update_goal: "plan",
    web_search: "web",
  },
  opencode: {
    read: "read",
    glob: "search",
    grep: "search",
    list: "search",
    write: "edit",
    edit: "edit",
    patch: "edit",
    bash: "run",
    task: "delegate",
    todowrite: "plan",
    todoread: "plan",
    webfetch: "web",
  },
  pi: { read: "read", write: "edit", edit: "edit", bash: "run" },
  openhands: {
    terminal: "run",
    file_editor: "edit",
    task_tracker: "plan",
    think: "plan",
    finish: "finish",
  },
  "mini-swe-agent": { bash: "run" },
};

/** Names mean the same in every harness that has them, so a harness without an adapter is read by all of them. */
const ALL_TOOLS: Tools = Object.assign({}, ...Object.values(HARNESS_TOOLS)) as Tools;

export function categoryOf(harness: string, tool: string): ToolCategory {
  const tools = Object.hasOwn(HARNESS_TOOLS, harness) ? HARNESS_TOOLS[harness]! : ALL_TOOLS;
  return Object.hasOwn(tools, tool) ? tools[tool]! : "other";
}
