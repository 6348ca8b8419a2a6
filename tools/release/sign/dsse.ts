import { type KeyObject, sign, verify } from 'node:crypto';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

export const ENVELOPE_TYPE = 'application/vnd.dsse.envelope.v1+json';

/** What a statement is about: something with a name and a digest. */
export interface Subject {
  name: string;
  /** `sha256:...` */
  digest: string;
}

/** An in-toto statement, version 1: somebody says something (the predicate) about a subject. */
export interface Statement {
  _type: string;
  subject: { name: string; digest: Record<string, string> }[];
  predicateType: string;
  predicate: unknown;
}

interface Envelope {
  payloadType?: unknown;
  payload?: unknown;
  signatures?: { sig?: unknown }[];
}

export function statementAbout(subject: Subject, predicateType: string, predicate: unknown): Statement {
  const sha256 = subject.digest.slice('sha256:'.length);
  return { _type: STATEMENT_TYPE, subject: [{ name: subject.name, digest: { sha256 } }], predicateType, predicate };
}

/** The bytes that DSSE signs: the type is signed with the payload, so that neither can be taken for another. */
function signedBytes(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload]);
}

/** The statement in a signed envelope (DSSE 1.0; ECDSA with SHA-256). */
export function seal(statement: Statement, privateKey: KeyObject): Buffer {
  const payload = Buffer.from(JSON.stringify(statement));
  const sig = sign('sha256', signedBytes(payload), privateKey).toString('base64');
  const envelope = { payloadType: PAYLOAD_TYPE, payload: payload.toString('base64'), signatures: [{ keyid: '', sig }] };
  return Buffer.from(JSON.stringify(envelope));
}

/** The statement of an envelope that the key has signed. Throws for any other. */
export function open(envelope: Buffer, publicKey: KeyObject): Statement {
  const { payloadType, payload, signatures = [] } = JSON.parse(envelope.toString()) as Envelope;
  if (payloadType !== PAYLOAD_TYPE || typeof payload !== 'string') throw new Error('An attestation is no in-toto one.');
  const bytes = Buffer.from(payload, 'base64');
  const isOurs = signatures.some(
    ({ sig }) => typeof sig === 'string' && verify('sha256', signedBytes(bytes), publicKey, Buffer.from(sig, 'base64')),
  );
  if (!isOurs) throw new Error('An attestation is not signed by the key.');
  const statement = JSON.parse(bytes.toString()) as Statement;
  if (statement._type !== STATEMENT_TYPE) throw new Error('An attestation is no in-toto statement.');
  return statement;
}
