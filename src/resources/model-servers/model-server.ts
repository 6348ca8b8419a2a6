import { isIP } from 'node:net';
import { z } from 'zod';
import type { KubeObject } from '../../kube/types.ts';
import { isInner } from '../../lib/inner-address.ts';
import { trimEnd } from '../../lib/trim-end.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  type CustomResource,
  listMap,
  patterned,
  withRules,
} from '../schema.ts';
import { PRICE } from '../money.ts';
import { FALLBACK_REASONS, PUBLIC_HOST } from './names.ts';

const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const PORT = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const BASE_URL = new RegExp(`^https?://${LABEL}(?:\\.${LABEL})*(?::${PORT})?(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$`);
const MODEL_NAME = /^[^\s,=\p{Cc}][^,=\p{Cc}]*$/u;

const priceSchema = (description: string) =>
  patterned(z.string().max(14), PRICE, 'write an amount with at most six decimals, for example 0.25').describe(
    description,
  );

const modelNameSchema = (description: string) =>
  patterned(z.string().min(1).max(256), MODEL_NAME, 'write a name without commas and equals signs').describe(
    description,
  );

const modelSchema = z
  .object({
    name: modelNameSchema('Name by which callers know the model.'),
    upstreamName: modelNameSchema('Name that the server has for it. Absent: the same.').optional(),
    contextLength: z.int().min(1).max(1_000_000_000).optional().describe('Tokens of prompt and answer together.'),
    price: z
      .object({
        input: priceSchema('Price of a million input tokens.'),
        cachedInput: priceSchema('Price of a million cached input tokens. Absent: that of input.').optional(),
        output: priceSchema('Price of a million output tokens.'),
        currency: patterned(z.string().max(3), /^[A-Z]{3}$/, 'write three capital letters, for example USD').describe(
          'ISO 4217 code.',
        ),
      })
      .optional()
      .describe('Price that tenants pay. Absent: nothing.'),
    fallbacks: z
      .object({
        models: z
          .array(modelNameSchema('Name of a model.'))
          .min(1)
          .max(4)
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .describe('Other models, in order.'),
        reasons: z
          .array(z.enum(FALLBACK_REASONS).describe('A reason.'))
          .max(4)
          .optional()
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .describe('When. Absent: for each of these reasons.'),
      })
      .optional()
      .describe('Where calls go that the server cannot take.'),
  })
  .describe('A model.');

const tenantsSchema = z.object({
  matchLabels: z
    .record(z.string().max(317), z.string().max(63).describe('Value of the label.'))
    .optional()
    .describe('Labels that the namespace must have.'),
  matchExpressions: z
    .array(
      z
        .object({
          key: z.string().min(1).max(317).describe('Name of the label.'),
          operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How it relates to the values.'),
          values: z
            .array(z.string().max(63).describe('Value of the label.'))
            .max(64)
            .optional()
            .meta({ 'x-kubernetes-list-type': 'atomic' })
            .describe('For In and NotIn.'),
        })
        .describe('A condition on one label.'),
    )
    .max(16)
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Conditions on labels, all of which must hold.'),
});

export const OUTSIDE_DIALECTS = ['chat', 'responses', 'messages'] as const;
/** Routes besides the dialects, as paths of the gateway. */
export const OUTSIDE_ENDPOINTS = [
  '/embeddings',
  '/rerank',
  '/score',
  '/completions',
  '/audio/transcriptions',
  '/audio/translations',
  '/audio/speech',
  '/images/generations',
  '/images/edits',
] as const;

export const modelServerSpecSchema = withRules(
  z.object({
    baseURL: patterned(
      z.string().min(1).max(1024),
      BASE_URL,
      'write what stands in front of /chat/completions, without user, query and fragment, for example https://api.example.com/v1',
    ).describe('URL in front of /chat/completions, as clients are given it: https://api.example.com/v1.'),
    allowHTTP: z
      .boolean()
      .optional()
      .describe('Lets baseURL be http: prompts, answers and the credential go over the network as they are.'),
    caBundle: z
      .string()
      .max(65_536)
      .optional()
      .describe('PEM of the only authorities that may have signed the certificate. Absent: those of the image.'),
    credentialSecret: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(
        'Secret of the same namespace with the key of the server under `api-key`. The chart lists it in models.engineSecrets, and its annotation berth.dev/model-credential-for names this server, namespace/name.',
      ),
    dialects: z
      .array(z.enum(OUTSIDE_DIALECTS).describe('A dialect.'))
      .max(3)
      .default(['chat'])
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe(
        'Dialects of the server: /chat/completions, /responses and /messages. Calls in others are translated. In messages the credential goes in x-api-key, else in Authorization.',
      ),
    endpoints: z
      .array(z.enum(OUTSIDE_ENDPOINTS).describe('A path.'))
      .max(OUTSIDE_ENDPOINTS.length)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe('Other endpoints that it has, behind baseURL.'),
    mediaHosts: z
      .array(
        patterned(
          z.string().max(253),
          PUBLIC_HOST,
          'write a public name of a host, for example images.example.com or *.example.com',
        ).describe('A host.'),
      )
      .max(64)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe('Hosts from which calls may have it fetch media. Absent: none.'),
    tenants: tenantsSchema
      .optional()
      .describe('Labels of the namespaces whose tenants may call it. Absent: every tenant.'),
    models: listMap(z.array(modelSchema).min(1).max(64), 'name').describe('Models of the server.'),
  }),
  {
    rule: 'self.baseURL.startsWith("https://") || (has(self.allowHTTP) && self.allowHTTP)',
    message: 'write https, or set allowHTTP where the way to the server is safe',
    fieldPath: '.baseURL',
  },
  {
    rule: 'self.dialects.size() > 0 || (has(self.endpoints) && self.endpoints.size() > 0)',
    message: 'name a dialect or an endpoint',
    fieldPath: '.dialects',
  },
);

export const modelServerStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
});

export type ModelServerSpec = z.infer<typeof modelServerSpecSchema>;
export interface ModelServer extends KubeObject {
  spec: ModelServerSpec;
  status?: z.infer<typeof modelServerStatusSchema>;
}

export const MODEL_SERVERS = berthType<ModelServer>('ModelServer', 'modelservers');

export const modelServerResource: CustomResource = {
  ...MODEL_SERVERS,
  shortNames: ['ms'],
  description:
    "Models of a server outside the cluster, which tenants call through Berth. It counts in Berth's own namespace and in no other.",
  columns: [
    { name: 'URL', type: 'string', jsonPath: '.spec.baseURL' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    AGE_COLUMN,
  ],
  spec: modelServerSpecSchema,
  status: modelServerStatusSchema,
};

/** Where a server outside is. */
export interface Outside {
  /** Scheme, host and port. */
  origin: string;
  /** In front of each route, without a slash at its end. */
  path: string;
}

/** Where the server is; a text where it may not be called: why. */
export function outsideOf({ baseURL, allowHTTP = false }: ModelServerSpec): Outside | string {
  if (!URL.canParse(baseURL)) return 'spec.baseURL is no URL';
  const { protocol, hostname, origin, pathname } = new URL(baseURL);
  if (protocol !== 'https:' && !(protocol === 'http:' && allowHTTP))
    return 'spec.baseURL is not https, and spec.allowHTTP is not set';
  // Nobody looks up an address, so nobody would check it when it is connected to.
  const address = hostname.replaceAll(/[[\]]/g, '');
  if (isIP(address) !== 0 && isInner(address))
    return 'spec.baseURL leads to this machine, its link or a metadata service';
  return { origin, path: trimEnd(pathname, '/') };
}
