import { z } from 'zod';
import { familyOf } from '../../../src/http/interface/errors/families.ts';
import { openApiDocument } from '../../../src/http/server/openapi/document.ts';

const mediaSchema = z.looseObject({ schema: z.unknown() });
const responseSchema = z.looseObject({ content: z.record(z.string(), mediaSchema).optional() });
type Response = z.infer<typeof responseSchema>;
const documentSchema = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        responses: z.record(z.string(), responseSchema),
      }),
    ),
  ),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
});

type JsonSchema = Parameters<typeof z.fromJSONSchema>[0];

/** A schema that also refuses fields the description does not have. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, closed(inner)] as const);
  const object: Record<string, unknown> = Object.fromEntries(entries);
  if (object['properties'] !== undefined && object['type'] === 'object') object['additionalProperties'] ??= false;
  if (typeof object['$ref'] === 'string') object['$ref'] = object['$ref'].replace('#/components/schemas/', '#/$defs/');
  return object;
}

/** An answer of the API that its OpenAPI description does not allow. */
export class ContractError extends Error {
  override name = 'ContractError';
}

/** Compares answers with the OpenAPI description; throws ContractError. Paths are relative to the base. */
export function createContract() {
  const document = documentSchema.parse(openApiDocument());
  const defs = closed(document.components.schemas);
  const validators = new Map<string, z.ZodType>();

  function validatorOf(schema: unknown): z.ZodType {
    const key = JSON.stringify(schema);
    let validator = validators.get(key);
    if (validator === undefined) {
      validator = z.fromJSONSchema({ ...(closed(schema) as object), $defs: defs } as JsonSchema);
      validators.set(key, validator);
    }
    return validator;
  }

  function operationOf(method: string, url: string) {
    const [path = ''] = url.split('?', 1);
    const template = Object.keys(document.paths).find((one) =>
      new RegExp(`^${one.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`).test(path),
    );
    return template === undefined ? undefined : document.paths[template]?.[method.toLowerCase()];
  }

  /** A path without a description may only answer failures, in the shape of its family. */
  function failure(path: string): Response {
    const name = { compute: 'ApiError', openai: 'OpenAIError', anthropic: 'AnthropicError' }[familyOf(path)];
    return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } };
  }

  function responseOf(method: string, path: string, status: number): Response | undefined {
    const operation = operationOf(method, path);
    if (operation !== undefined) return operation.responses[String(status)] ?? operation.responses['default'];
    return status >= 400 ? failure(path) : undefined;
  }

  return (method: string, path: string, answer: { status: number; type: string | null; text: string }): void => {
    const call = `${method} ${path}: ${answer.status}`;
    const response = responseOf(method, path, answer.status);
    if (response === undefined) throw new ContractError(`${call} is not documented: ${answer.text.slice(0, 300)}`);
    if (answer.text === '' && (response.content === undefined || method === 'HEAD')) return;
    const type = answer.type?.split(';', 1)[0] ?? '';
    const media = response.content?.[type];
    if (media === undefined) throw new ContractError(`${call} has the undocumented type "${type}"`);
    if (answer.text === '') throw new ContractError(`${call} has no body`);
    if (type !== 'application/json') return;
    const parsed = validatorOf(media.schema).safeParse(JSON.parse(answer.text));
    if (!parsed.success) throw new ContractError(`${call} is not as documented: ${z.prettifyError(parsed.error)}`);
  };
}
