import { parseSync } from 'rolldown/utils';

/** A regular expression of a file, or the line of one that only a run of the program could tell. */
export type Found = { line: number; expression: RegExp } | { line: number; expression?: undefined };

interface Syntax {
  type: string;
  start: number;
  [field: string]: unknown;
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function childrenOf(node: Syntax): Syntax[] {
  return Object.values(node).flatMap((value) => [value].flat().filter(isSyntax));
}

function everyNode(root: Syntax): Syntax[] {
  const nodes = [root];
  for (const node of nodes) nodes.push(...childrenOf(node));
  return nodes;
}

function nameOf(node: unknown): string | undefined {
  return isSyntax(node) && node.type === 'Identifier' ? String(node['name']) : undefined;
}

/** The text that a literal, or a template of constants of the same file, stands for. */
function constantText(node: unknown, constants: ReadonlyMap<string, unknown>): string | undefined {
  if (!isSyntax(node)) return undefined;
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : undefined;
  if (node.type === 'Identifier') return constantText(constants.get(String(node['name'])), constants);
  if (node.type === 'TaggedTemplateExpression') return templateText(node['quasi'], 'raw', constants);
  return node.type === 'TemplateLiteral' ? templateText(node, 'cooked', constants) : undefined;
}

function templateText(
  node: unknown,
  form: 'raw' | 'cooked',
  constants: ReadonlyMap<string, unknown>,
): string | undefined {
  const { quasis = [], expressions = [] } = node as {
    quasis?: { value: { raw: string; cooked: string } }[];
    expressions?: unknown[];
  };
  const parts = expressions.map((each) => constantText(each, constants));
  if (parts.includes(undefined)) return undefined;
  return quasis.map(({ value }, at) => `${value[form]}${parts[at] ?? ''}`).join('');
}

/** Every literal, and every call of RegExp, wherever it stands in the file. */
export function expressionsOf(path: string, text: string): Found[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed`);
  const nodes = everyNode(program as unknown as Syntax);
  const constants = new Map(
    nodes.flatMap((node): [string, unknown][] =>
      node.type === 'VariableDeclarator' ? [[nameOf(node['id']) ?? '', node['init']]] : [],
    ),
  );
  return nodes.flatMap((node): Found[] => {
    const line = text.slice(0, node.start).split('\n').length;
    if (node.type === 'Literal' && isRegex(node['regex'])) {
      return [{ line, expression: new RegExp(node['regex'].pattern, node['regex'].flags) }];
    }
    const isMade =
      (node.type === 'NewExpression' || node.type === 'CallExpression') && nameOf(node['callee']) === 'RegExp';
    if (!isMade) return [];
    const [source, flags] = (node['arguments'] as unknown[]).map((each) => constantText(each, constants));
    const hasFlags = (node['arguments'] as unknown[]).length > 1;
    if (source === undefined || (hasFlags && flags === undefined)) return [{ line }];
    return [{ line, expression: new RegExp(source, flags) }];
  });
}

function isRegex(value: unknown): value is { pattern: string; flags: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value && 'flags' in value;
}
