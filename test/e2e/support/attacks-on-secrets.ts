import { account, type Attack, CREATE } from './attack.ts';
import { NAMESPACE, TENANT } from './release.ts';

const ROLES = ['controller', 'api', 'dashboard', 'ssh'];

/** Tries to get at Secrets with the account of each role. */
export function forSecrets(): Attack[] {
  const metadata = {
    namespace: NAMESPACE,
    name: 'berth-token',
    annotations: { 'kubernetes.io/service-account.name': 'berth-controller' },
  };
  const input = { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token', metadata };
  return ROLES.flatMap((role) => [
    {
      title: `the ${role} role has the token of another one written into a Secret`,
      as: account(role),
      command: CREATE,
      input,
      refusal: 'this role of Berth makes the Secret berth-',
    },
    {
      title: `the ${role} role reads a tenant's Secrets`,
      as: account(role),
      command: ['get', 'secrets', '-n', TENANT],
      refusal: 'cannot list resource "secrets"',
    },
  ]);
}

interface Metadata {
  namespace?: string;
  name?: string;
  ownerReferences?: readonly object[];
}

/** The Secret of a registry as the api role may create it, with one thing changed. */
function registrySecret(metadata: Metadata, type = 'kubernetes.io/dockerconfigjson'): object {
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'RegistryCredential', name: 'x', uid: 'of-nothing' };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { namespace: TENANT, name: 'x', ownerReferences: [owner], ...metadata },
    data: { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') },
  };
}

/** Tries to use the right to store passwords of registries for anything else. */
export function forRegistries(): Attack[] {
  const refusal = 'this role of Berth makes the Secret berth-port-session';
  // The policy of tenants refuses this one too, and the API server names either policy.
  const either = "ValidatingAdmissionPolicy 'berth-";
  const secrets = [
    { which: 'of another name', input: registrySecret({ name: 'mine' }), refusal },
    { which: 'of another type', input: registrySecret({}, 'Opaque'), refusal },
    { which: 'that no RegistryCredential owns', input: registrySecret({ ownerReferences: [] }), refusal },
    { which: 'among those of the cluster', input: registrySecret({ namespace: 'kube-system' }), refusal: either },
    { which: "in Berth's own namespace", input: registrySecret({ namespace: NAMESPACE }), refusal },
  ];
  const made = secrets.map(({ which, input, refusal: words }) => ({
    title: `the api role makes a Secret ${which}`,
    as: account('api'),
    command: CREATE,
    input,
    refusal: words,
  }));
  const rights = ['get', 'delete'].map((verb) => ({
    title: `the api role asks to ${verb} the password of a registry`,
    as: account('api'),
    command: [verb, 'secret', 'x', '-n', TENANT],
    refusal: `cannot ${verb} resource "secrets"`,
  }));
  return [...made, ...rights];
}
