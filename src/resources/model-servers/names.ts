/** A name of a model in an annotation, where commas and equals signs divide. */
export const MODEL_NAME = /^[^\s,=\p{Cc}][^,=\p{Cc}]{0,255}$/u;

/** A host of the internet, or `*.` and a domain for all hosts below it. */
export const PUBLIC_HOST = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Why a call goes to another model than it named. */
export const FALLBACK_REASONS = ['unavailable', 'full', 'overflow', 'error'] as const;
export type FallbackReason = (typeof FALLBACK_REASONS)[number];
