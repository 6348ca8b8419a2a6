import { ERRORS } from '../../interface/errors/catalogue.ts';
import type { Operation } from '../../interface/route.ts';
import { nameOf as schemaName } from '../../interface/schema.ts';
import { OPERATIONS } from '../table.ts';
import { componentSchemas, DESCRIPTION, errorsOf, parametersOf } from './document.ts';
import { GUIDES } from './guides.ts';

/** What is read of a JSON Schema here. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  additionalProperties?: Schema | boolean;
  [bound: string]: unknown;
}

/** Bounds that JSON Schema has of a value, in the order in which they are printed. */
const BOUNDS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'maxProperties', 'default'];

function isNull({ type }: Schema): boolean {
  return type === 'null';
}

/** The schema without its null, and whether it may be null. */
function nullable(schema: Schema): { schema: Schema; mayBeNull: boolean } {
  const { anyOf = schema.oneOf, ...rest } = schema;
  if (anyOf === undefined) return { schema, mayBeNull: false };
  const others = anyOf.filter((one) => !isNull(one));
  const [only] = others;
  const inner = only !== undefined && others.length === 1 ? { ...only, ...rest } : { ...rest, anyOf: others };
  return { schema: inner, mayBeNull: others.length < anyOf.length };
}

function typeOf(whole: Schema): string {
  const { schema, mayBeNull } = nullable(whole);
  const name = nameOf(schema);
  return mayBeNull ? `${name} or null` : name;
}

function nameOf({ $ref, anyOf, enum: values, const: only, type, items, format, additionalProperties }: Schema): string {
  if ($ref !== undefined) return linkTo($ref.slice($ref.lastIndexOf('/') + 1));
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ');
  if (values !== undefined) return values.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (type === 'array') return `list of ${typeOf(items ?? {})}`;
  if (type === 'object' && typeof additionalProperties === 'object') return `object of ${typeOf(additionalProperties)}`;
  const name = Array.isArray(type) ? type.join(' or ') : (type ?? 'any');
  return format === undefined ? name : `${name} (${format})`;
}

function linkTo(name: string): string {
  return `[${name}](#${name.toLowerCase()})`;
}

function cell(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', String.raw`\|`);
}

function boundsOf(schema: Schema): string {
  const found = BOUNDS.filter(
    (bound) => schema[bound] !== undefined && Math.abs(Number(schema[bound])) !== 2 ** 53 - 1,
  );
  return found.map((bound) => `${bound} ${JSON.stringify(schema[bound])}`).join(', ');
}

function row(label: string, whole: Schema, required: boolean): string {
  const { schema } = nullable(whole);
  const description = whole.description ?? schema.description ?? '';
  const notes = [description, boundsOf(schema)].filter((text) => text !== '').join(' ');
  return `| ${label} | ${cell(typeOf(whole))} | ${required ? 'yes' : 'no'} | ${cell(notes)} |`;
}

/** A row for each field, and for each field of objects in it. */
function rowsOf(whole: Schema, prefix = ''): string[] {
  const { properties = {}, required = [] } = nullable(whole).schema;
  return Object.entries(properties).flatMap(([name, field]) => {
    const { schema } = nullable(field);
    const inner = schema.type === 'array' ? rowsOf(schema.items ?? {}, `${prefix}${name}[].`) : [];
    return [
      row(`\`${prefix}${name}\``, field, required.includes(name)),
      ...inner,
      ...rowsOf(field, `${prefix}${name}.`),
    ];
  });
}

const FIELDS = '| field | type | required | what it is |\n|---|---|---|---|';

function parametersIn(operation: Operation): string {
  const rows = parametersOf(operation).map(({ name, in: place, required, schema, ...rest }) => {
    const { description = '' }: { description?: string | undefined } = rest;
    return row(`\`${name}\`, ${place}`, { ...(schema as Schema), description }, required);
  });
  return rows.length === 0 ? '' : `${FIELDS.replace('field', 'parameter')}\n${rows.join('\n')}`;
}

function operationText(operation: Operation): string {
  const { method, path, summary, description = '', scope, request, success, events, plainText, csv } = operation;
  const [example] = Object.values(request?.examples ?? {}).slice(-1);
  const also = [
    ...(plainText === undefined ? [] : ['as `text/plain`']),
    ...(csv === undefined ? [] : ['as `text/csv`']),
    ...(events === undefined ? [] : [`as an event stream with \`Accept: text/event-stream\` (${events})`]),
  ];
  const codes = [...errorsOf(operation)].map((code) => `${ERRORS[code].status} \`${code}\``);
  const blocks = [
    `### ${method.toUpperCase()} ${path}`,
    `${summary}. ${description}`.trim(),
    `Scope: \`${scope}\`.`,
    parametersIn(operation),
    request === undefined
      ? ''
      : `Body${request.required ? '' : ' (may be absent)'}: ${linkTo(schemaName(request.schema))}.`,
    example === undefined ? '' : `\`\`\`json\n${JSON.stringify(example.value, undefined, 2)}\n\`\`\``,
    `Answers ${success.status} ${linkTo(schemaName(success.schema))}: ${success.description}`,
    also.length === 0 ? '' : `Also ${also.join(', and ')}.`,
    `Errors: ${codes.join(', ')}.`,
  ];
  return blocks.filter((text) => text !== '').join('\n\n');
}

function schemaText([name, schema]: [string, Schema]): string {
  const rows = rowsOf(schema);
  const table = rows.length === 0 ? [] : [`${FIELDS}\n${rows.join('\n')}`];
  return [`### ${name}`, schema.description ?? '', ...table].join('\n\n');
}

function errorText(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, help }]) => `| ${status} | \`${code}\` | ${cell(help)} |`);
  return `| status | code | what it says |\n|---|---|---|\n${rows.join('\n')}`;
}

/** The OpenAPI document as Markdown, for programs and people that read text: every endpoint, field and error. */
export function apiMarkdown(): string {
  const groups = [...Map.groupBy(OPERATIONS, ({ tag }) => tag)];
  const schemas = Object.entries(componentSchemas() as Record<string, Schema>);
  const blocks = [
    '# The Berth API',
    DESCRIPTION,
    'Paths below are relative to `/api/v1`.',
    ...groups.flatMap(([tag, operations]) => [`## ${tag}`, ...operations.map(operationText)]),
    '## Schemas',
    ...schemas.map(schemaText),
    '## Errors',
    errorText(),
  ];
  return `${blocks.join('\n\n')}\n`;
}

/** What /llms.txt says, in the form of llmstxt.org: a title, a summary, the first steps, and links to the rest. */
export const LLMS_TEXT = `# Berth

> An HTTP API to rent GPU instances of a Kubernetes cluster, to reach them by SSH, and to call the models of the cluster.

- The base URL is \`/api/v1\` on this host. Every call there needs \`Authorization: Bearer API_KEY\`. Calls of
  models take the key as \`X-Api-Key\` or \`Api-Key\` too. People make keys at \`/dashboard\`.
- Bodies are JSON. Unknown fields are refused with 422 and a list of fields. null equals absent.
- \`GET /api/v1/offers\` lists what is for rent. \`POST /api/v1/instances\` rents: \`{}\` takes the cheapest free offer, and
  \`ask_id\` an offer by its id. When no place is free, it answers 409 with alternatives. \`DELETE /api/v1/instances/ID\`
  gives the GPUs back: the meter runs until then.
- Send an \`Idempotency-Key\` with \`POST /api/v1/instances\`, so that a retry rents nothing twice.
- \`state\` in the record says when the instance runs, and \`ssh.command\` how to log in. Register a public key at
  \`/api/v1/ssh-keys\` first.
- Model calls have the shape of the OpenAI and the Anthropic API: \`/api/v1/chat/completions\`, \`/api/v1/messages\`.
- Errors have a \`code\` for programs and a \`message\` that says what to do. 429 and 503 carry \`Retry-After\`.

## Documentation

- [API reference in Markdown](/docs/api.md): every endpoint, field and error
- [OpenAPI 3.1 document](/openapi.json): the same for generators of clients
${GUIDES.map(({ file, title, about }) => `- [${title}](/docs/${file}): ${about}\n`).join('')}
## Optional

- [Interactive reference](/docs/api): the OpenAPI document, rendered for people
- [Documents](/docs/): the guides as pages, with a search
- [Entry points as JSON](/): what is where on this host
`;
