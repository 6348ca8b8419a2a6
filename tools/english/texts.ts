import { parseAst } from 'rolldown/parseAst';

/** A text for people, and where it begins in its file. */
export interface Text {
  readonly at: number;
  readonly text: string;
}

const blank = (part: string): string => part.replaceAll(/[^\n]/g, '_');

/** A document without code, quotations and addresses of links, each replaced by as many other characters. */
export function textOfMarkdown(document: string): Text {
  const text = document
    .replaceAll(/^ *```.*?^ *```$/gms, blank)
    .replaceAll(/<!--.*?-->/gs, blank)
    .replaceAll(/`(?:[^`\n]|\n(?!\n))+`/g, blank)
    .replaceAll(/"[^"\n]*"/g, blank)
    .replaceAll(/(?<=\])\([^)\s]+\)/g, blank);
  return { at: 0, text };
}

/** A template of the chart without its comments. */
export function textOfTemplate(template: string): Text {
  return { at: 0, text: template.replaceAll(/\/\*.*?\*\//gs, blank).replaceAll(/^\s*# .*$/gm, blank) };
}

/** The strings of a program that have several words; what varies in a template is left out. */
export function textsOfProgram(name: string, source: string): Text[] {
  const texts: Text[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    else if (typeof node === 'object' && node !== null) look(node as Readonly<Record<string, unknown>>);
  };
  const look = (node: Readonly<Record<string, unknown>>): void => {
    const { type, start, value } = node;
    if ((type === 'Literal' || type === 'JSXText') && typeof value === 'string') add(start, value);
    if (type === 'TemplateElement') add(start, (value as { cooked: string | null }).cooked ?? '');
    Object.values(node).forEach(visit);
  };
  const add = (start: unknown, text: string): void => {
    if (text.includes(' ')) texts.push({ at: Number(start), text });
  };
  visit(parseAst(source, { lang: name.endsWith('x') ? 'tsx' : 'ts' }, name));
  return texts;
}
