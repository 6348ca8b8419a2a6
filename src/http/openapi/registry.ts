import { z } from 'zod';
import {
  anthropicErrorSchema,
  errorSchema,
  modelUnauthorizedSchema,
  openAiErrorSchema,
  unauthorizedSchema,
} from '../schemas/error.ts';
import {
  createInstanceSchema,
  deletedInstanceSchema,
  instanceListSchema,
  instanceSchema,
  updateInstanceSchema,
} from '../schemas/instance.ts';
import { fleetSchema } from '../fleet/schema.ts';
import { eventListSchema } from '../schemas/event.ts';
import { logSchema } from '../schemas/log.ts';
import { metricsSchema } from '../schemas/metrics.ts';
import { createLinkSchema, linkSchema } from '../schemas/link.ts';
import { limitsSchema } from '../schemas/limits.ts';
import {
  modelListSchema,
  modelRequestSchema,
  modelResponseSchema,
  modelSchema,
  wholeModelRequestSchema,
} from '../schemas/model.ts';
import {
  foundOfferListSchema,
  foundOfferSchema,
  offerListSchema,
  offerSchema,
  offerSearchSchema,
} from '../schemas/offer.ts';
import {
  createRegistrySchema,
  deletedRegistrySchema,
  registryListSchema,
  registrySchema,
} from '../schemas/registry.ts';
import { createSshKeySchema, deletedSshKeySchema, sshKeyListSchema, sshKeySchema } from '../schemas/ssh-key.ts';
import {
  deletedTemplateSchema,
  templateContentSchema,
  templateListSchema,
  templateSchema,
} from '../schemas/template.ts';
import { usageSchema } from '../usage/schema.ts';
import {
  createWebhookSchema,
  deletedWebhookSchema,
  webhookListSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from '../webhooks/schema.ts';

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
