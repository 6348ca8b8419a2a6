import { account, type Attack, CREATE, custom, KEPT, MANAGER, type Targets } from './attack.ts';
import { NAMESPACE, TENANT } from './release.ts';

const lease = (name: string): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: NAMESPACE, name, annotations: KEPT },
});
const REFUSAL = 'Berth writes the Leases of model servers, those of activity and that of the controller, and no other';

const ENTRY = {
  by: 'key/none',
  model: 'none',
  inputPrice: '0',
  cachedInputPrice: '0',
  outputPrice: '0',
  calls: 0,
  unreported: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  cost: '0.00',
};
const BILL = { day: '2026-01-01', replica: 'none', calls: 0, cost: '0.00', currency: 'USD', entries: [] };

/** What the rights for models, from zero and with prices, could be turned to. */
export function onModels({ admin }: Pick<Targets, 'admin'>): Attack[] {
  return [
    {
      title: 'a tenant writes what its calls to models cost',
      as: admin,
      command: CREATE,
      input: custom('TokenRecord', TENANT, BILL),
      refusal: 'cannot create resource "tokenrecords"',
    },
    {
      title: 'an administrator writes what calls to models cost',
      command: CREATE,
      input: custom('TokenRecord', TENANT, { ...BILL, entries: [ENTRY] }),
      refusal: "only Berth's api role writes tokenrecords",
    },
    {
      title: 'the api role removes what calls to models cost',
      as: account('api'),
      command: ['delete', '--raw', `/apis/berth.dev/v1alpha1/namespaces/${TENANT}/tokenrecords/attack`],
      refusal: 'cannot delete resource "tokenrecords"',
    },
    {
      title: 'the api role writes the Lease by which the controller leads',
      as: account('api'),
      command: ['apply', '--server-side', `--field-manager=${MANAGER}`, '-f', '-'],
      input: lease('berth-controller'),
      refusal: REFUSAL,
    },
    {
      title: 'the controller makes a Lease of another name',
      as: account('controller'),
      command: CREATE,
      input: lease('attack'),
      refusal: REFUSAL,
    },
    ...['api', 'ssh'].map((role) => ({
      title: `the ${role} role scales a workload`,
      as: account(role),
      command: ['scale', 'deployment/model', '--replicas=0', '-n', TENANT],
      refusal: 'cannot get resource "deployments"',
    })),
    {
      title: 'the controller scales a workload of Berth',
      as: account('controller'),
      command: ['get', '--raw', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/berth-api/scale`],
      refusal: 'cannot get resource "deployments/scale"',
    },
  ];
}
