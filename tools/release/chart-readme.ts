import { isMap, parseDocument, type Document, type Node, type Pair } from 'yaml';

/** One row of the table of values. */
export interface ValueDoc {
  key: string;
  type: string;
  value: string;
  text: string;
}

const MARK = '-- ';

function textOf(node: unknown): string | undefined {
  const comment = (node as { commentBefore?: string | null } | null)?.commentBefore ?? '';
  const at = comment.lastIndexOf(MARK);
  return at === -1
    ? undefined
    : comment
        .slice(at + MARK.length)
        .replaceAll(/\n\s*/g, ' ')
        .trim();
}

function typeOf(value: unknown): string {
  if (value === null) return 'integer';
  if (Array.isArray(value)) return 'list';
  return typeof value === 'number' ? 'integer' : typeof value;
}

/** The comment of a pair. The parser keeps the comment of a map's first key on the map. */
function comments(pair: Pair, parent: Node, index: number): string | undefined {
  return textOf(pair.key) ?? (index === 0 ? textOf(parent) : undefined);
}

function walk(document: Document, node: Node, path: string, rows: ValueDoc[]): void {
  if (!isMap(node)) return;
  for (const [index, pair] of node.items.entries()) {
    const key = path === '' ? String(pair.key) : `${path}.${String(pair.key)}`;
    const text = comments(pair, node, index);
    const child = pair.value as Node;
    if (text === undefined) {
      if (!isMap(child)) throw new Error(`values.yaml: ${key} has no comment that starts with "# -- "`);
      walk(document, child, key, rows);
    } else {
      const value: unknown = child.toJS(document);
      rows.push({ key, type: typeOf(value), value: JSON.stringify(value), text });
    }
  }
}

/** The documented values, in the order of the file. Throws when a value has no comment. */
export function valueDocs(valuesYaml: string): ValueDoc[] {
  const document = parseDocument(valuesYaml);
  const rows: ValueDoc[] = [];
  if (document.contents !== null) walk(document, document.contents, '', rows);
  return rows;
}

const cell = (text: string): string => text.replaceAll('|', String.raw`\|`);

/** The chart's README: `head` with a table of all values behind it. */
export function chartReadme(head: string, valuesYaml: string): string {
  const rows = valueDocs(valuesYaml).map(
    ({ key, type, value, text }) => `| \`${key}\` | ${type} | \`${cell(value)}\` | ${cell(text)} |`,
  );
  const note = '<!-- Generated from README.head.md and values.yaml by `npm run generate`. Do not edit. -->';
  return [
    note,
    '',
    head.trim(),
    '',
    '## Values',
    '',
    '| Key | Type | Default | Description |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
