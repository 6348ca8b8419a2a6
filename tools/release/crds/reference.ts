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

/** What a field takes and means, as a cell of a table. */
function meaningOf(schema: Schema): string {
  const refusals = (schema['x-kubernetes-validations'] ?? []).map(({ message }) => `Otherwise refused: ${message}.`);
  const shown = JSON.stringify(schema.default);
  const usual = shown === undefined || shown.length > 40 ? [] : [`Default: \`${shown}\`.`];
  return [schema.description ?? '', ...usual, ...refusals]
    .join(' ')
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .trim();
}

function rowsOf(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}.${name}`;
    const isRequired = schema.required?.includes(name) && field.default === undefined;
    const row = `| \`${here}\` | ${typeOf(field)}${isRequired ? ', required' : ''} | ${meaningOf(field)} |`;
    const list = field.items === undefined ? [] : rowsOf(field.items, `${here}[]`);
    const map = field.additionalProperties === undefined ? [] : rowsOf(field.additionalProperties, `${here}.*`);
    return [row, ...rowsOf(field, here), ...list, ...map];
  });
}

function sectionOf(resource: CustomResource): string {
  const { kind, plural, shortNames, namespaced, description, columns, selectable = [], rules = [] } = resource;
  const schema = schemaOf(resource);
  const { spec = {}, status } = schema.properties ?? {};
  const where = namespaced ? 'in a namespace' : 'cluster-wide';
  const table = (part: Schema, path: string): string =>
    `| Field | Takes | Meaning |\n|---|---|---|\n${rowsOf(part, path).join('\n')}\n`;
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
    table(spec, 'spec'),
    ...(refused.length === 0 ? [] : [`Refused otherwise:\n\n${refused.join('')}`]),
    ...(status === undefined ? [] : [table(status, 'status')]),
  ].join('\n');
}

/** The page docs/run/reference.md. */
export function referencePage(): string {
  return [HEAD, ...CUSTOM_RESOURCES.map(sectionOf)].join('\n');
}
