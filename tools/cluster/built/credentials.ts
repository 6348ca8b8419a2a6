import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, issue, type Identity } from '../../lib/x509.ts';

/** The users of the API server, with a token each. The kubeconfig of `admin` is for people. */
const USERS = {
  admin: { name: 'berth-admin', groups: 'system:masters' },
  'controller-manager': { name: 'system:kube-controller-manager', groups: 'system:masters' },
  scheduler: { name: 'system:kube-scheduler', groups: '' },
  kubelet: { name: 'system:node:real-0', groups: 'system:nodes' },
  'kube-proxy': { name: 'system:kube-proxy', groups: '' },
  kwok: { name: 'berth-kwok', groups: 'system:masters' },
} as const satisfies Record<string, { name: string; groups: string }>;

export interface CredentialOptions {
  /** The folder to write into; made with mode 0700. */
  folder: string;
  /** URL of the API server for its clients. */
  server: string;
  /** Names and addresses in the API server's certificate. */
  serverHosts: readonly string[];
  nodeAddress: string;
}

/** Writes every key, certificate, token and kubeconfig of a new cluster. Their owner alone can read them. */
export async function writeCredentials(options: CredentialOptions): Promise<void> {
  const { folder, server, serverHosts, nodeAddress } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
  const authority = await createAuthority('berth-local');
  write('ca.crt', authority.certificate);
  const identities: Record<string, Identity> = {
    apiserver: await issue(authority, { commonName: 'kube-apiserver', hosts: serverHosts }),
    'apiserver-kubelet': await issue(authority, {
      commonName: 'kube-apiserver-kubelet-client',
      organisation: 'system:masters',
    }),
    etcd: await issue(authority, { commonName: 'etcd', hosts: ['127.0.0.1', 'localhost'] }),
    kubelet: await issue(authority, { commonName: 'real-0', hosts: ['real-0', nodeAddress] }),
  };
  for (const [name, identity] of Object.entries(identities)) {
    write(`${name}.crt`, identity.certificate);
    write(`${name}.key`, identity.key);
  }
  const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  write('service-accounts.key', signer.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  write('service-accounts.pub', signer.publicKey.export({ type: 'spki', format: 'pem' }));

  const tokens: string[] = [];
  for (const [file, user] of Object.entries(USERS)) {
    const token = randomBytes(24).toString('base64url');
    tokens.push(`${token},${user.name},${user.name}${user.groups === '' ? '' : `,"${user.groups}"`}`);
    write(`${file}.kubeconfig`, kubeconfig({ server, authority: authority.certificate, token }));
  }
  write('tokens.csv', `${tokens.join('\n')}\n`);
}

/** A kubeconfig as JSON, which is YAML. */
function kubeconfig({ server, authority, token }: { server: string; authority: string; token: string }): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'berth-local',
    clusters: [
      {
        name: 'berth-local',
        cluster: { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') },
      },
    ],
    users: [{ name: 'berth-local', user: { token } }],
    contexts: [{ name: 'berth-local', context: { cluster: 'berth-local', user: 'berth-local' } }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
