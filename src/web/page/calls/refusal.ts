import type { FoundOffer } from '../../../wire/records.ts';
import { CallError, messageOf } from './call.ts';

/** Why a form was refused. */
export interface Refusal {
  message: string;
  fields: readonly { path: string; expected: string }[];
  alternatives: readonly FoundOffer[];
}

export const NO_REFUSAL: Refusal = { message: '', fields: [], alternatives: [] };

export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof CallError)) return { ...NO_REFUSAL, message: messageOf(error) };
  const { message, fields = [], alternatives = [] } = error.failure;
  return { message, fields, alternatives };
}
