import { READY_REASONS } from '../../../src/resources/instances/instance-state.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';
import { API_VERSION, type CustomResource, type Rule } from '../../../src/resources/schema.ts';
import { customResourceDefinition } from '../../../src/resources/crd.ts';

/** What the page shows of a schema. */
interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  'x-kubernetes-validations'?: readonly Rule[];
}

const HEAD = `# Custom resources

Every field of every kind of \`${API_VERSION}\`. Made from the schemas in \`src/resources\` by \`npm run generate\`: do not
edit. \`kubectl explain\` says the same. [The glossary](../build/architecture.md#glossary) has the words.
`;

function schemaOf(resource: CustomResource): Schema {
  const definition = customResourceDefinition(resource) as {
    spec: { versions: { schema: { openAPIV3Schema: Schema } }[] };
  };
  return definition.spec.versions[0]?.schema.openAPIV3Schema ?? {};
}

function boundsOf({ minimum, maximum, maxLength, maxItems }: Schema): string[] {
  return [
    ...(minimum === undefined && maximum === undefined ? [] : [`${minimum ?? ''} to ${maximum ?? 'any'}`]),
    ...(maxLength === undefined ? [] : [`at most ${maxLength} characters`]),
    ...(maxItems === undefined ? [] : [`at most ${maxItems}`]),
  ];
}

function typeOf(schema: Schema): string {
  const { type = 'any', items } = schema;
  const name = type === 'array' ? `list of ${items?.type ?? 'any'}` : type;
  const values = schema.enum?.map((value) => `\`${String(value)}\``).join(', ');
  return [values ?? name, ...boundsOf(schema)].join(', ');
}

/** What a field means, and what is refused. */
function meaningOf(schema: Schema): string {
  const refusals = (schema['x-kubernetes-validations'] ?? []).map(({ message }) => `Otherwise refused: ${message}.`);
  const shown = JSON.stringify(schema.default);
  const usual = shown === undefined || shown.length > 40 ? [] : [`Default: \`${shown}\`.`];
  return [schema.description ?? '', ...usual, ...refusals].join(' ').replaceAll('\n', ' ').trim();
}

/** The rows of a page. Fields that several places have are rows once: the other places name the first. */
class Rows {
  readonly #first = new Map<string, string>();

  of(schema: Schema, kind: string, path: string): string[] {
    return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
      const here = `${path}.${name}`;
      const isRequired = schema.required?.includes(name) && field.default === undefined;
      const { rows, as } = this.#below(field, kind, here);
      const meaning = [meaningOf(field), ...(as === undefined ? [] : [`Fields: as ${as}.`])].join(' ');
      return [`- \`${here}\`: ${typeOf(field)}${isRequired ? ', required' : ''}. ${meaning}`.trim(), ...rows];
    });
  }

  #below(field: Schema, kind: string, path: string): { rows: string[]; as?: string } {
    const below = [
      { schema: field, suffix: '' },
      { schema: field.items, suffix: '[]' },
      { schema: field.additionalProperties, suffix: '.*' },
    ].find(({ schema }) => schema?.properties !== undefined);
    if (below?.schema === undefined) return { rows: [] };
    const key = JSON.stringify([below.schema.properties, below.schema.required]);
    const as = this.#first.get(key);
    if (as !== undefined) return { rows: [], as };
    const here = `${path}${below.suffix}`;
    this.#first.set(key, `\`${here}\` of ${kind}`);
    return { rows: this.of(below.schema, kind, here) };
  }
}

function sectionOf(resource: CustomResource, rows: Rows): string {
  const { kind, plural, shortNames, namespaced, description, columns, selectable = [], rules = [] } = resource;
  const schema = schemaOf(resource);
  const { spec = {}, status } = schema.properties ?? {};
  const where = namespaced ? 'in a namespace' : 'cluster-wide';
  const list = (part: Schema, path: string): string =>
    `### ${kind}: ${path}\n\n${rows.of(part, kind, path).join('\n')}\n`;
  const refused = [...rules, ...(spec['x-kubernetes-validations'] ?? [])].map(({ message }) => `- ${message}\n`);
  return [
    `## ${kind}\n`,
    `${description}\n`,
    `\`${plural}.${API_VERSION.split('/')[0]}\`, short ${shortNames.map((name) => `\`${name}\``).join(', ')}, ${where}.\n` +
      `\`kubectl get\` shows ${columns.map(({ name }) => name).join(', ')}.` +
      (selectable.length === 0
        ? ''
        : `\n\`--field-selector\` takes ${selectable.map((path) => `\`${path.slice(1)}\``).join(', ')} (Kubernetes 1.31 and newer).`) +
      '\n',
    list(spec, 'spec'),
    ...(refused.length === 0 ? [] : [`Refused otherwise:\n\n${refused.join('')}`]),
    ...(status === undefined ? [] : [list(status, 'status')]),
  ].join('\n');
}

function reasons(): string {
  const rows = Object.entries(READY_REASONS).map(([name, { state, help }]) => `| \`${name}\` | ${state} | ${help} |\n`);
  return `## Reasons of Ready

The reason of the condition \`Ready\` of a GPUInstance, which \`kubectl get gpuinstances\` shows as STATE, and the \`state\` over HTTP.

| Reason | State | Meaning |
|---|---|---|
${rows.join('')}`;
}

/** The page docs/run/reference.md. */
export function referencePage(): string {
  const rows = new Rows();
  return [HEAD, ...CUSTOM_RESOURCES.map((resource) => sectionOf(resource, rows)), reasons()].join('\n');
}
