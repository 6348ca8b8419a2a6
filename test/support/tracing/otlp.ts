/** What a message of protobuf has: the values of each field, in their order. */
type Fields = Map<number, (bigint | Buffer)[]>;

/** A span as it was sent. Times are ms since the epoch. */
export interface SentSpan {
  traceId: string;
  spanId: string;
  /** Empty for the first of a trace. */
  parentId: string;
  state: string;
  name: string;
  kind: 'internal' | 'server' | 'client' | 'other';
  from: number;
  to: number;
  attributes: Record<string, unknown>;
  failed: boolean;
  /** Attributes of the resource. */
  resource: Record<string, unknown>;
}

const KINDS: Record<string, SentSpan['kind']> = { 1: 'internal', 2: 'server', 3: 'client' };
const ERROR = 2n;

function fieldsOf(bytes: Buffer): Fields {
  const found: Fields = new Map();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError('A message of protobuf ends too early.');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const type = tag & 7;
    let value: bigint | Buffer;
    if (type === 0) value = varint();
    else if (type === 1) value = take(8);
    else if (type === 2) value = take(Number(varint()));
    else if (type === 5) value = take(4);
    else throw new RangeError(`The type ${type} of a field is not known.`);
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value]);
  }
  return found;
}

function bytesAt(fields: Fields, field: number): Buffer {
  const [value] = fields.get(field) ?? [];
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0);
}

function messagesAt(fields: Fields, field: number): Fields[] {
  return (fields.get(field) ?? []).map((value) => fieldsOf(Buffer.isBuffer(value) ? value : Buffer.alloc(0)));
}

function valueOf(fields: Fields): unknown {
  const text = fields.get(1)?.[0];
  if (Buffer.isBuffer(text)) return text.toString();
  if (fields.has(2)) return fields.get(2)?.[0] === 1n;
  if (fields.has(3)) return Number(fields.get(3)?.[0]);
  return bytesAt(fields, 4).readDoubleLE();
}

function attributesAt(fields: Fields, field: number): Record<string, unknown> {
  const pairs = messagesAt(fields, field).map((pair) => [
    bytesAt(pair, 1).toString(),
    valueOf(messagesAt(pair, 2)[0] ?? new Map()),
  ]);
  return Object.fromEntries(pairs) as Record<string, unknown>;
}

function timeAt(fields: Fields, field: number): number {
  return Number(bytesAt(fields, field).readBigUInt64LE() / 1000n) / 1000;
}

/** The spans of an ExportTraceServiceRequest (opentelemetry-proto, trace.proto). */
export function readSpans(body: Buffer): SentSpan[] {
  return messagesAt(fieldsOf(body), 1).flatMap((ofResource) => {
    const [resource = new Map() as Fields] = messagesAt(ofResource, 1);
    return messagesAt(ofResource, 2).flatMap((ofScope) =>
      messagesAt(ofScope, 2).map((span) => ({
        traceId: bytesAt(span, 1).toString('hex'),
        spanId: bytesAt(span, 2).toString('hex'),
        parentId: bytesAt(span, 4).toString('hex'),
        state: bytesAt(span, 3).toString(),
        name: bytesAt(span, 5).toString(),
        kind: KINDS[String(span.get(6)?.[0])] ?? 'other',
        from: timeAt(span, 7),
        to: timeAt(span, 8),
        attributes: attributesAt(span, 9),
        failed: messagesAt(span, 15)[0]?.get(3)?.[0] === ERROR,
        resource: attributesAt(resource, 1),
      })),
    );
  });
}
