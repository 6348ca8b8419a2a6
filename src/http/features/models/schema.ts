import { z } from 'zod';
import { FORM_FIELD } from '../../../wire/model-endpoints.ts';
import { named } from '../../interface/schema.ts';

export const modelSchema = named(
  'Model',
  z
    .looseObject({
      id: z.string().describe('Send it as `model`.'),
      object: z.literal('model'),
      created: z.int(),
      owned_by: z.string(),
    })
    .describe('A model that the cluster serves.'),
);

export const modelListSchema = named(
  'ModelList',
  z.looseObject({ object: z.literal('list'), data: z.array(modelSchema) }),
);

export const modelRequestSchema = named(
  'ModelRequest',
  z
    .looseObject({
      model: z.string().min(1).describe('Id of a model from GET /models.'),
      stream: z.boolean().nullish(),
    })
    .describe('A request of the named API. Other fields pass through to the engine.'),
);

export const wholeModelRequestSchema = named(
  'WholeModelRequest',
  z
    .looseObject({
      model: z.string().min(1).describe('Id of a model from GET /models.'),
      stream: z.literal(false).nullish(),
    })
    .describe('A request of the named API, whose answer comes whole. Other fields pass through to the engine.'),
);

export const modelFormSchema = named(
  'ModelForm',
  z
    .looseObject({
      model: z.string().min(1).describe('Id of a model from GET /models.'),
      stream: z.literal('false').optional(),
    })
    .meta({ propertyNames: { pattern: FORM_FIELD.source } })
    .describe('A form of the named API, whose answer comes whole. Other fields and files pass through to the engine.'),
);

export const modelResponseSchema = named('ModelResponse', z.looseObject({}).describe('An answer of the named API.'));
