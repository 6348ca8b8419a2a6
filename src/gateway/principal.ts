/** Limits of one API key. Absent means unlimited. */
export interface KeyLimits {
  requestsPerMinute?: number;
  tokensPerMinute?: number;
  concurrentRequests?: number;
}

/** The authenticated caller, as the authentication in front of the model router leaves it. */
export interface Principal {
  /** Stable identifier of the API key; also a metric label, so never the token itself. */
  keyId: string;
  /** The tenant: the namespace the key lives in. */
  namespace: string;
  name: string;
  scopes: readonly string[];
  limits?: KeyLimits;
}
