import { z } from 'zod';
import { offerSchema } from '../../features/offers/schema.ts';
import { type ErrorCode, ERRORS } from '../../interface/errors/catalogue.ts';
import { named } from '../../interface/schema.ts';

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

export const errorSchema = named(
  'ApiError',
  z
    .object({
      error: z.object({
        message: z.string().describe('For people: what happened, why, and what to do.'),
        code: z.enum(CODES).describe('For programs. Codes are never renamed.'),
        fields: z
          .array(z.object({ path: z.string(), expected: z.string() }))
          .optional()
          .describe('With validation_failed: each invalid field.'),
        alternatives: z
          .array(offerSchema)
          .optional()
          .describe('With offer_unavailable and offer_changed: the nearest offers that are free.'),
        offer: offerSchema.optional().describe('With offer_changed: the current offer.'),
        incident_id: z.string().optional().describe('With 5xx: quote it in a report.'),
      }),
    })
    .describe('Every failure of the compute endpoints except 401.'),
);

export const unauthorizedSchema = named(
  'Unauthorized',
  z
    .object({ error: z.object({ message: z.literal('Invalid API key.'), code: z.literal('invalid_api_key') }) })
    .describe('The key is missing, unknown, expired or revoked.'),
);

export const modelUnauthorizedSchema = named(
  'ModelUnauthorized',
  z
    .object({
      error: z.object({
        message: z.literal('Invalid API key.'),
        type: z.literal('invalid_request_error'),
        code: z.literal(401),
      }),
    })
    .describe('The same on the model endpoints.'),
);

export const openAiErrorSchema = named(
  'OpenAIError',
  z
    .object({
      error: z.looseObject({
        message: z.string(),
        type: z.string(),
        param: z.string().nullish(),
        code: z.string().nullish(),
      }),
    })
    .describe("A failure of a model endpoint, in OpenAI's shape."),
);

export const anthropicErrorSchema = named(
  'AnthropicError',
  z
    .object({
      type: z.literal('error'),
      error: z.looseObject({ type: z.string(), message: z.string() }),
      request_id: z.string().nullish(),
    })
    .describe("A failure of /messages, in Anthropic's shape."),
);
