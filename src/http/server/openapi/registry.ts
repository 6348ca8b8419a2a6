import { z } from 'zod';
import {
  anthropicErrorSchema,
  errorSchema,
  modelUnauthorizedSchema,
  openAiErrorSchema,
  unauthorizedSchema,
} from './error-schemas.ts';
import {
  createInstanceSchema,
  deletedInstanceSchema,
  instanceListSchema,
  instanceSchema,
  updateInstanceSchema,
} from '../../features/instances/schema.ts';
import { fleetSchema } from '../../features/fleet/schema.ts';
import { eventListSchema } from '../../features/events/schema.ts';
import { logSchema } from '../../features/logs/schema.ts';
import { metricsSchema } from '../../features/metrics/schema.ts';
import { createLinkSchema, linkSchema } from '../../features/ports/schema.ts';
import { limitsSchema } from '../../features/limits/schema.ts';
import {
  modelListSchema,
  modelRequestSchema,
  modelResponseSchema,
  modelSchema,
  wholeModelRequestSchema,
} from '../../features/models/schema.ts';
import {
  foundOfferListSchema,
  foundOfferSchema,
  offerListSchema,
  offerSchema,
  offerSearchSchema,
} from '../../features/offers/schema.ts';
import {
  createRegistrySchema,
  deletedRegistrySchema,
  registryListSchema,
  registrySchema,
} from '../../features/registries/schema.ts';
import {
  createSshKeySchema,
  deletedSshKeySchema,
  sshKeyListSchema,
  sshKeySchema,
} from '../../features/ssh-keys/schema.ts';
import {
  deletedTemplateSchema,
  templateContentSchema,
  templateListSchema,
  templateSchema,
} from '../../features/templates/schema.ts';
import { usageSchema } from '../../features/usage/schema.ts';
import {
  createWebhookSchema,
  deletedWebhookSchema,
  webhookListSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from '../../features/webhooks/schema.ts';

/** The schemas that have a name in the document. */
const NAMED = {
  Offer: offerSchema,
  OfferList: offerListSchema,
  OfferSearch: offerSearchSchema,
  FoundOffer: foundOfferSchema,
  FoundOfferList: foundOfferListSchema,
  CreateInstance: createInstanceSchema,
  UpdateInstance: updateInstanceSchema,
  Instance: instanceSchema,
  InstanceList: instanceListSchema,
  DeletedInstance: deletedInstanceSchema,
  CreateLink: createLinkSchema,
  Link: linkSchema,
  TemplateContent: templateContentSchema,
  Template: templateSchema,
  TemplateList: templateListSchema,
  DeletedTemplate: deletedTemplateSchema,
  Log: logSchema,
  EventList: eventListSchema,
  Metrics: metricsSchema,
  CreateSSHKey: createSshKeySchema,
  SSHKey: sshKeySchema,
  SSHKeyList: sshKeyListSchema,
  DeletedSSHKey: deletedSshKeySchema,
  CreateRegistry: createRegistrySchema,
  Registry: registrySchema,
  RegistryList: registryListSchema,
  DeletedRegistry: deletedRegistrySchema,
  CreateWebhook: createWebhookSchema,
  Webhook: webhookSchema,
  WebhookWithSecret: webhookWithSecretSchema,
  WebhookList: webhookListSchema,
  DeletedWebhook: deletedWebhookSchema,
  Limits: limitsSchema,
  Fleet: fleetSchema,
  Usage: usageSchema,
  Model: modelSchema,
  ModelList: modelListSchema,
  ModelRequest: modelRequestSchema,
  WholeModelRequest: wholeModelRequestSchema,
  ModelResponse: modelResponseSchema,
  ApiError: errorSchema,
  Unauthorized: unauthorizedSchema,
  ModelUnauthorized: modelUnauthorizedSchema,
  OpenAIError: openAiErrorSchema,
  AnthropicError: anthropicErrorSchema,
} as const;

export type SchemaName = keyof typeof NAMED;

/** What a body is once it is parsed by the schema. */
export type Body<N extends SchemaName> = z.infer<(typeof NAMED)[N]>;

export const SCHEMAS: { readonly [N in SchemaName]: z.ZodType<Body<N>> } = NAMED;

/** `components.schemas` of the document, from the schemas that validate. */
export function componentSchemas(): Record<string, unknown> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(SCHEMAS)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    target: 'draft-2020-12',
    uri: (id) => `#/components/schemas/${id}`,
    // What only the API server reads, of schemas that are the resources' own.
    override: ({ jsonSchema }) => {
      for (const key of Object.keys(jsonSchema)) if (key.startsWith('x-kubernetes-')) delete jsonSchema[key];
    },
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _schema, $id: _id, ...schema }]) => [id, schema]),
  );
}

export function refTo(name: SchemaName): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}
