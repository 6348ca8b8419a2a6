import { networkInterfaces } from 'node:os';
import { createAuthority, issue } from '../../tools/lib/x509.ts';
import { type EngineOptions, type ScriptedEngine, startEngine } from './scripted-engine.ts';

/** An address of this machine that others reach it by: Berth takes none of the loopback for a server outside. */
export function outerAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const found = all.find(
    ({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.'),
  );
  if (found === undefined) throw new Error('This machine has no address beside its loopback.');
  return found.address;
}

export interface OutsideEngine extends ScriptedEngine {
  /** As a ModelServer names it. */
  baseURL: string;
  /** PEM of the authority of its certificate. */
  ca: string;
}

/** A server that plays a provider outside the cluster, over TLS, with a certificate of an authority of its own. */
export async function startOutside(options: EngineOptions = {}): Promise<OutsideEngine> {
  const address = outerAddress();
  const authority = await createAuthority('outside');
  const tls = await issue(authority, { commonName: 'outside', hosts: [address] });
  const engine = await startEngine({ engine: 'unknown', address, tls, ...options });
  // Not a copy, which would have the number of connections of now.
  return Object.assign(engine, { baseURL: `${engine.origin}/v1`, ca: authority.certificate });
}
