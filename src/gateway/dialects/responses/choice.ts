import { type AllowedTools, parseAllowedTools } from '../allowed-tools.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { excerpt, objectAt, optionalString, stringAt } from '../fields.ts';
import type { Tool, ToolChoice } from '../types.ts';
import { ownTool } from './own-tools.ts';
import { wireName } from './tools.ts';

/** The choice of tools, and for `allowed_tools` which of them to offer. Throws DialectError. */
export function parseResponsesChoice(value: unknown): { toolChoice?: ToolChoice } & Partial<AllowedTools> {
  if (value === undefined || value === null) return {};
  if (value === 'auto' || value === 'none' || value === 'required') return { toolChoice: { mode: value } };
  const choice = objectAt(value, 'tool_choice');
  if (choice.type === 'function' || choice.type === 'custom') {
    const name = wireName(optionalString(choice.namespace), stringAt(choice.name, 'tool_choice.name'));
    return { toolChoice: { mode: 'tool', name } };
  }
  if (choice.type === 'allowed_tools') return parseAllowedTools(choice, 'tool_choice');
  const own = ownTool(choice);
  if (own !== undefined) return { toolChoice: { mode: 'tool', name: own.name } };
  throw unsupported(
    'tool_choice',
    `tool_choice of type '${excerpt(choice.type)}' names a hosted tool, which is not available here. Choose a function.`,
  );
}

/** The choice by the name that the model sees. It may leave out the namespace, unless several have a tool of the name. */
export function chosenAmong(choice: ToolChoice | undefined, tools: readonly Tool[]): ToolChoice | undefined {
  if (choice?.mode !== 'tool' || tools.some(({ name }) => name === choice.name)) return choice;
  const names = new Set(tools.flatMap(({ name, origin }) => (origin?.name === choice.name ? [name] : [])));
  const [name] = names;
  return names.size === 1 && name !== undefined ? { mode: 'tool', name } : choice;
}
