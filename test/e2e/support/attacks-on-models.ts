import { account, type Attack, CREATE, KEPT, MANAGER } from './attack.ts';
import { NAMESPACE, TENANT } from './release.ts';

const lease = (name: string): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: NAMESPACE, name, annotations: KEPT },
});
const REFUSAL = 'Berth writes the Leases of model servers and that of the controller, and no other';

/** What the rights for models from zero could be turned to. */
export function onModels(): Attack[] {
  return [
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
