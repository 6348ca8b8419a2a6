import type { WebhookConfiguration } from '../../kube/installation-types.ts';
import { selects } from '../../kube/selector.ts';
import type { KubeObject } from '../../kube/types.ts';
import { LABELS_OF_PODS } from '../../inventory/network/policies.ts';
import { GROUP } from '../../resources/schema.ts';
import { hasTenantLabel } from '../../resources/tenants/tenancy.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';
import { check, named, type Problem } from '../finding.ts';

type Webhook = NonNullable<WebhookConfiguration['webhooks']>[number];

function takes(list: readonly string[] | undefined, value: string): boolean {
  return list?.some((one) => one === '*' || one === value) ?? false;
}

/** Whether a rule sees that an object is made: of the core group `pods`, of Berth any. */
function seesCreate({ rules = [] }: Webhook, group: string, resource: string): boolean {
  return rules.some(
    ({ apiGroups, operations, resources }) =>
      takes(apiGroups, group) &&
      takes(operations, 'CREATE') &&
      (takes(resources, resource) || takes(resources, '*/*') || takes(resources, `${resource}/*`)),
  );
}

/** Namespaces of tenants in which a webhook is asked about a pod or an instance. */
function tenantsOf(webhook: Webhook, tenants: readonly KubeObject[]): string[] {
  const sees = seesCreate(webhook, '', 'pods') || seesCreate(webhook, GROUP, 'gpuinstances');
  if (!sees || !selects(webhook.objectSelector, LABELS_OF_PODS)) return [];
  const selector = webhook.namespaceSelector;
  return tenants
    .filter(({ metadata }) => {
      // The API server gives every namespace this label.
      return selects(selector, { 'kubernetes.io/metadata.name': metadata.name, ...metadata.labels });
    })
    .map(({ metadata }) => metadata.name)
    .toSorted();
}

function problems(
  configuration: WebhookConfiguration,
  kind: 'validating' | 'mutating',
  tenants: readonly KubeObject[],
): Problem[] {
  const { name } = configuration.metadata;
  const resource = `${kind}webhookconfiguration`;
  return (configuration.webhooks ?? []).flatMap((webhook): Problem[] => {
    const seen = tenantsOf(webhook, tenants);
    if (seen.length === 0) return [];
    const isClosed = (webhook.failurePolicy ?? 'Fail') === 'Fail';
    const isMutating = kind === 'mutating';
    if (!isClosed && !isMutating) return [];
    const what = isMutating ? 'may change' : 'is asked about';
    const closed = isClosed ? ', and while it does not answer, refuses them' : '';
    return [
      {
        severity: 'warning',
        reason: isMutating ? 'MutatingWebhook' : 'WebhookFailsClosed',
        objects: [`${resource}/${name}`],
        message: `Webhook ${webhook.name} of ${resource} ${name} ${what} pods or instances in ${named(seen)}${closed}.`,
        why: isMutating
          ? 'The admission policies of Berth refuse a pod that has more than Berth asks for: such instances stay pending with PodRejected.'
          : 'No instance starts while the webhook is away.',
        remedy: `kubectl edit ${resource} ${name}   # namespaceSelector: ${TENANT_LABEL} NotIn [true]`,
      },
    ];
  });
}

export const webhooks = check({
  name: 'webhooks',
  title: "No webhook closes or changes tenants' namespaces",
  needs: ['validatingWebhooks', 'mutatingWebhooks', 'namespaces'],
  find({ validatingWebhooks, mutatingWebhooks, namespaces }) {
    const tenants = namespaces.filter(hasTenantLabel);
    return [
      ...validatingWebhooks.flatMap((one) => problems(one, 'validating', tenants)),
      ...mutatingWebhooks.flatMap((one) => problems(one, 'mutating', tenants)),
    ];
  },
});
