import { isObject, type Json } from '../../lib/json.ts';
import { invalid } from './errors/dialect-error.ts';
import { arrayAt, objectAt, optionalString, stringAt, textValue } from './fields.ts';
import { isDispensable, wireName } from './responses/tools.ts';
import type { Tool, ToolChoice } from './types.ts';

export interface AllowedTools {
  toolChoice: ToolChoice;
  /** Those of the tools that are allowed. Throws DialectError where none is. */
  among: (tools: readonly Tool[]) => Tool[];
}

/** What `allowed_tools` says, in chat and in responses. Throws DialectError. */
export function parseAllowedTools(value: unknown, path: string): AllowedTools {
  const { mode, tools: given } = objectAt(value, path);
  const at = `${path}.tools`;
  const entries = arrayAt(given, at).map((entry, position) => parseEntry(entry, `${at}[${position}]`));
  const isAllowed = allowedBy(entries);
  return {
    toolChoice: { mode: mode === 'required' ? 'required' : 'auto' },
    among(tools) {
      const allowed = tools.filter(isAllowed);
      if (allowed.length === 0 && !entries.some(isDispensable))
        throw invalid(at, "expected at least one of those in 'tools'");
      return allowed;
    },
  };
}

/** An entry as responses has it. Chat has its name in an object of its own. */
function parseEntry(value: unknown, path: string): Json {
  const entry = objectAt(value, path);
  if (!NAMED.has(entry.type)) return entry;
  const { name } = [entry.function, entry.custom].find(isObject) ?? entry;
  return { ...entry, name: stringAt(name, `${path}.name`) };
}

const NAMED = new Set<unknown>(['function', 'custom', 'namespace']);

/** Whether an entry names a tool: by its type, its namespace, or its name with or without that. */
function allowedBy(entries: readonly Json[]): (tool: Tool) => boolean {
  const types = new Set(entries.map(({ type }) => type));
  const namespaces = new Set(entries.flatMap(({ type, name }) => (type === 'namespace' ? [name] : [])));
  const others = entries.filter(({ type }) => type !== 'namespace');
  const full = new Set(others.map(({ namespace, name }) => wireName(optionalString(namespace), textValue(name))));
  const bare = new Set(others.map(({ name }) => name));
  return ({ name, origin }) => {
    if (origin?.type === 'own') return types.has(origin.name);
    if (origin?.namespace !== undefined && namespaces.has(origin.namespace)) return true;
    return full.has(name) || (origin !== undefined && bare.has(origin.name));
  };
}
