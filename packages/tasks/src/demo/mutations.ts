/**
 * Owns the procedural bugs: which single expressions of a function can be replaced by a plausible wrong one.
 * Applied to correct code a mutation injects a bug; applied to buggy code the same list holds the repair and the
 * wrong repairs. Does not judge which of them changes behaviour: that takes the tests.
 *
 * The order of the list depends on the syntax tree alone, so renaming locals keeps every index.
 */
import { type AnyNode, type Function as FunctionNode, parse } from "acorn";
import { fullAncestor } from "acorn-walk";

export type MutationKind =
  | "comparison-boundary"
  | "comparison-equality"
  | "comparison-flip"
  | "dropped-accumulation"
  | "initial-value"
  | "operator-swap"
  | "wrong-variable";

export interface Mutation {
  readonly kind: MutationKind;
  /** Character range of the replaced expression in the function's source. */
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

interface Scope {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

const ASSIGNMENTS: Record<string, readonly string[]> = {
  "+=": ["-=", "*="],
  "-=": ["+=", "*="],
  "*=": ["+=", "-="],
  "=": ["+=", "-=", "*="],
};

const COMPARISONS: Record<string, readonly string[]> = {
  ">": ["<", ">=", "=="],
  "<": [">", "<=", "=="],
  ">=": [">", "<=", "=="],
  "<=": ["<", ">=", "=="],
  "==": [">", "<"],
};

/** Every mutation of one function declaration, by position and then by rule. */
export function mutationsOf(functionSource: string): Mutation[] {
  const program = parse(functionSource, { ecmaVersion: "latest" });
  const scopes = localsOf(program);
  const lists = iteratedNames(program);
  const found: Mutation[] = [];
  fullAncestor(program, (node) => {
    const text = (part: AnyNode) => functionSource.slice(part.start, part.end);
    const visible = scopes
      .filter((scope) => scope.start <= node.start && node.end <= scope.end && !lists.has(scope.name))
      .map((scope) => scope.name);
    for (const [kind, after] of replacements(node as AnyNode, text, visible)) {
      found.push({ kind, start: node.start, end: node.end, before: text(node as AnyNode), after });
    }
  });
  return found.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** The function's source with the mutation's expression replaced. */
export function applyMutation(functionSource: string, mutation: Mutation): string {
  return functionSource.slice(0, mutation.start) + mutation.after + functionSource.slice(mutation.end);
}

/** Names declared in the code with the range in which each can be used, in order of declaration. */
export function localsOf(program: AnyNode): Scope[] {
  const scopes: Scope[] = [];
  fullAncestor(program, (node, _state, ancestors) => {
    const current = node as AnyNode;
    if (current.type === "FunctionDeclaration") {
      for (const parameter of (current as FunctionNode).params) {
        if (parameter.type === "Identifier") scopes.push(range(parameter.name, current));
      }
    }
    if (current.type === "VariableDeclarator" && current.id.type === "Identifier") {
      const owner = (ancestors as AnyNode[]).findLast(
        (outer) =>
          outer.type === "BlockStatement" || outer.type === "ForOfStatement" || outer.type === "ForStatement",
      );
      scopes.push(range(current.id.name, owner ?? program));
    }
  });
  return scopes.sort((a, b) => a.start - b.start);
}

function range(name: string, owner: AnyNode): Scope {
  return { name, start: owner.start, end: owner.end };
}

function iteratedNames(program: AnyNode): Set<string> {
  const names = new Set<string>();
  fullAncestor(program, (node) => {
    const loop = node as AnyNode;
    if (loop.type === "ForOfStatement" && loop.right.type === "Identifier") names.add(loop.right.name);
  });
  return names;
}

function replacements(
  node: AnyNode,
  text: (part: AnyNode) => string,
  visible: readonly string[],
): [MutationKind, string][] {
  switch (node.type) {
    case "VariableDeclarator":
      return initialValues(node.init).map((value) => ["initial-value", `${text(node.id)} = ${value}`]);
    case "UpdateExpression":
      return [["operator-swap", `${text(node.argument)}${node.operator === "++" ? "--" : "++"}`]];
    case "AssignmentExpression": {
      const [left, right] = [text(node.left), text(node.right)];
      const swaps = (ASSIGNMENTS[node.operator] ?? []).map((operator): [MutationKind, string] => [
        "operator-swap",
        `${left} ${operator} ${right}`,
      ]);
      const dropped: [MutationKind, string][] =
        node.operator === "=" ? [] : [["dropped-accumulation", `${left} = ${right}`]];
      return [...swaps, ...dropped, ...otherOperands(node.right, `${left} ${node.operator}`, visible, [])];
    }
    case "BinaryExpression": {
      const [left, right] = [text(node.left), text(node.right)];
      const others = COMPARISONS[node.operator] ?? [];
      if (others.length === 0) return [];
      return [
        ...others.map((operator): [MutationKind, string] => [
          comparisonKind(node.operator, operator),
          `${left} ${operator} ${right}`,
        ]),
        // Comparing a variable with itself is a constant, not a mistake anyone makes.
        ...otherOperands(node.right, `${left} ${node.operator}`, visible, [left]),
      ];
    }
    default:
      return [];
  }
}

function initialValues(init: AnyNode | null | undefined): number[] {
  if (init?.type !== "Literal" || typeof init.value !== "number") return [];
  return init.value === 0 ? [1] : [init.value - 1, init.value + 1];
}

function comparisonKind(from: string, to: string): MutationKind {
  if (to === "==" || from === "==") return "comparison-equality";
  return from[0] === to[0] ? "comparison-boundary" : "comparison-flip";
}

function otherOperands(
  operand: AnyNode,
  prefix: string,
  visible: readonly string[],
  excluded: readonly string[],
): [MutationKind, string][] {
  if (operand.type !== "Identifier") return [];
  return visible
    .filter((name) => name !== operand.name && !excluded.includes(name))
    .map((name) => ["wrong-variable", `${prefix} ${name}`]);
}
