import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Server } from 'node:tls';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import { ConfigError } from '../config/config.ts';
import type { Clock } from '../lib/clock.ts';

/** How often the files are read, in ms. The kubelet brings what changed in a Secret within two minutes. */
const REREAD_MS = 60_000;

/** A certificate with its authorities, and its private key; PEM. */
export interface Pair {
  cert: Buffer;
  key: Buffer;
}

/** Where the files are, as a Secret of the type kubernetes.io/tls has them. */
export interface CertificateFiles {
  folder: string;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
}

/** Rejects where one file is missing, or they are not of each other: the two may be read while they change. */
async function readPair(folder: string): Promise<Pair> {
  const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map((name) => readFile(join(folder, name))));
  if (cert === undefined || key === undefined) throw new RangeError('no files');
  const pair = { cert, key };
  createSecureContext(pair);
  return pair;
}

/** What a server begins with. Throws ConfigError. */
export async function firstPair(folder: string): Promise<Pair> {
  try {
    return await readPair(folder);
  } catch (error) {
    throw new ConfigError(
      `BERTH_METRICS_TLS: ${folder} has no usable tls.crt and tls.key: ${(error as Error).message}`,
    );
  }
}

/** Gives the server each pair that takes the place of the one before, until it is called. What is unusable changes nothing. */
export function keepRenewed(
  server: Pick<Server, 'setSecureContext'>,
  first: Pair,
  files: CertificateFiles,
): () => void {
  const { folder, clock, log } = files;
  let served = first;
  let stopped = false;
  const look = async (): Promise<void> => {
    try {
      const pair = await readPair(folder);
      if (pair.cert.equals(served.cert) && pair.key.equals(served.key)) return;
      server.setSecureContext(pair);
      served = pair;
    } catch (err) {
      log.warn({ err, folder }, 'The renewed certificate of the metrics port cannot be used; the one before stays');
    }
  };
  let cancel = (): void => undefined;
  const wait = (): void => {
    cancel = clock.setTimeout(() => void look().finally(() => stopped || wait()), REREAD_MS);
  };
  wait();
  return () => {
    stopped = true;
    cancel();
  };
}
