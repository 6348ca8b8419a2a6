import type { EngineCredential } from '../../resources/model-servers/engine-credential.ts';
import type { ClientError } from '../dialects/index.ts';

/** Engines repeat what they were sent when they complain of it. */
export function withoutKey(credential: EngineCredential | undefined, error: ClientError): ClientError {
  if (credential === undefined) return error;
  const { status, code, param, overflow } = error;
  return {
    status,
    code: code && credential.redact(code),
    param: param && credential.redact(param),
    overflow,
    message: credential.redact(error.message),
  };
}
