import { hash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  patterned,
  timeSchema,
  withRules,
  type CustomResource,
} from './schema.ts';
import { budgetSchema, budgetStatusSchema } from './tenants/budget.ts';

export const SCOPES = ['compute:read', 'compute:write', 'models'] as const;
export type Scope = (typeof SCOPES)[number];

export const PRIORITIES = ['low', 'normal', 'high'] as const;
export type Priority = (typeof PRIORITIES)[number];

export const apiKeySpecSchema = withRules(
  z.object({
    hash: patterned(
      z.string().max(64),
      /^[0-9a-f]{64}$/,
      'write the SHA-256 of the token as 64 lower-case hex digits',
    ).describe('SHA-256 of the token in lower-case hex. Nothing stores the token itself.'),
    prefix: z.string().max(16).default('').describe('First characters of the token, for people to recognise it.'),
    displayName: z.string().max(128).default('').describe('The purpose of the key, in the words of the tenant.'),
    scopes: z
      .array(z.enum(SCOPES).describe('One thing that the key may do.'))
      .min(1)
      .max(3)
      .default([...SCOPES])
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe('The rights of the key: compute:read, compute:write, models.'),
    models: z
      .array(
        patterned(
          z.string().min(1).max(256),
          /^[^*]*\*?$/,
          'write the name of a model, or the start of one and a * at the end, for example qwen*',
        ).describe('A model, or the start of its name and a * at the end.'),
      )
      .min(1)
      .max(64)
      .optional()
      .describe('Models that the key may call. Absent: every model of the tenant.'),
    priority: z
      .enum(PRIORITIES)
      .optional()
      .describe(
        'Which model calls of the tenant go first when they wait for a busy server: of 21 turns high gets 16, normal 4, low 1. Absent: normal.',
      ),
    expiresAt: timeSchema.optional().describe('When the key stops working. Absent: never.'),
    revoked: z
      .boolean()
      .default(false)
      .describe('True stops the key at once and keeps its record. It cannot become false again.'),
    limits: z
      .object({
        requestsPerMinute: z.int().min(1).max(1_000_000).optional().describe('Calls per minute.'),
        tokensPerMinute: z.int().min(1).max(1_000_000_000).optional().describe('Model tokens per minute.'),
        concurrentRequests: z.int().min(1).max(100_000).optional().describe('Model calls at the same time.'),
        budget: budgetSchema
          .optional()
          .describe(
            'The money that this key may spend in a calendar month of UTC: on instances that it created, starts that it asked for, and calls to models. All limits apply.',
          ),
      })
      .optional()
      .describe('Limits of this key, in addition to those of the installation.'),
  }),
  {
    rule: 'self.hash == oldSelf.hash',
    message: 'hash cannot change: create another APIKey and delete this one',
    fieldPath: '.hash',
  },
  { rule: '!oldSelf.revoked || self.revoked', message: 'a revoked key stays revoked: create another APIKey' },
);

export const apiKeyStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  lastUsedTime: timeSchema.optional().describe('Last use, exact to a few minutes.'),
  budget: budgetStatusSchema.optional(),
});

export type ApiKeySpec = z.infer<typeof apiKeySpecSchema>;
export type ApiKeyStatus = z.infer<typeof apiKeyStatusSchema>;
export interface ApiKey extends KubeObject {
  spec: ApiKeySpec;
  status?: ApiKeyStatus;
}

export const API_KEYS = berthType<ApiKey>('APIKey', 'apikeys');

export const apiKeyResource: CustomResource = {
  ...API_KEYS,
  shortNames: ['bkey'],
  description: 'A bearer key of the HTTP interface. Its namespace is the tenant that it acts for.',
  columns: [
    { name: 'Prefix', type: 'string', jsonPath: '.spec.prefix' },
    { name: 'Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Scopes', type: 'string', jsonPath: '.spec.scopes' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    { name: 'Last-Used', type: 'date', jsonPath: '.status.lastUsedTime', priority: 1 },
    AGE_COLUMN,
  ],
  spec: apiKeySpecSchema,
  status: apiKeyStatusSchema,
};

const KEY_PREFIX = 'key/';

/** What says that the APIKey of this name created an instance, or called a model. */
export function createdByKey(name: string): string {
  return `${KEY_PREFIX}${name}`;
}

/** The name of the APIKey that created an instance, as the instance says; undefined where it says that another did. */
export function creatingKey(createdBy: string | undefined): string | undefined {
  return createdBy?.startsWith(KEY_PREFIX) ? createdBy.slice(KEY_PREFIX.length) : undefined;
}

const TOKEN_PREFIX = 'berth_';

/** SHA-256 of a token in lower-case hex, as APIKey.spec.hash carries it. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/**
 * A new token: `berth_`, 256 random bits in base64url, and the first six hex digits of the SHA-256 of both. With this
 * checksum a secret scanner tells a token from other text without a look-up.
 */
export function mintToken(): { token: string; hash: string; prefix: string } {
  const body = `${TOKEN_PREFIX}${randomBytes(32).toString('base64url')}`;
  const token = `${body}${hash('sha256', body).slice(0, 6)}`;
  return { token, hash: hashToken(token), prefix: token.slice(0, TOKEN_PREFIX.length + 6) };
}
