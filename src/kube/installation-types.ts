import type {
  V1DaemonSet,
  V1Deployment,
  V1MutatingWebhookConfiguration,
  V1RuntimeClass,
  V1ValidatingAdmissionPolicy,
  V1ValidatingAdmissionPolicyBinding,
  V1ValidatingWebhookConfiguration,
} from '@kubernetes/client-node';
import type { LabelSelector } from './selector.ts';
import { type KubeObject, type Served, v1 } from './types.ts';

// Kinds that an installation is made of, and which no server role reads.

export type Deployment = Served<V1Deployment>;
export type DaemonSet = Served<V1DaemonSet>;
export type RuntimeClass = Served<V1RuntimeClass>;
export type ValidatingAdmissionPolicy = Served<V1ValidatingAdmissionPolicy>;
export type ValidatingAdmissionPolicyBinding = Served<V1ValidatingAdmissionPolicyBinding>;
export type WebhookConfiguration = Served<V1ValidatingWebhookConfiguration | V1MutatingWebhookConfiguration>;

/** Networks in which the addresses of Services are. */
export interface ServiceCidr extends KubeObject {
  spec?: { cidrs?: readonly string[] };
}

/** A ServiceMonitor or PodMonitor of the Prometheus operator, as far as it says what it scrapes. */
export interface Monitor extends KubeObject {
  spec?: { selector?: LabelSelector; namespaceSelector?: { any?: boolean; matchNames?: readonly string[] } };
}

const ADMISSION = 'admissionregistration.k8s.io';
const MONITORING = 'monitoring.coreos.com';

export const DEPLOYMENTS = v1<Deployment>('apps', 'Deployment', 'deployments');
export const DAEMON_SETS = v1<DaemonSet>('apps', 'DaemonSet', 'daemonsets');
export const RUNTIME_CLASSES = v1<RuntimeClass>('node.k8s.io', 'RuntimeClass', 'runtimeclasses', false);
export const SERVICE_CIDRS = v1<ServiceCidr>('networking.k8s.io', 'ServiceCIDR', 'servicecidrs', false);
export const VALIDATING_POLICIES = v1<ValidatingAdmissionPolicy>(
  ADMISSION,
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
  false,
);
export const VALIDATING_BINDINGS = v1<ValidatingAdmissionPolicyBinding>(
  ADMISSION,
  'ValidatingAdmissionPolicyBinding',
  'validatingadmissionpolicybindings',
  false,
);
export const VALIDATING_WEBHOOKS = v1<WebhookConfiguration>(
  ADMISSION,
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  false,
);
export const MUTATING_WEBHOOKS = v1<WebhookConfiguration>(
  ADMISSION,
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  false,
);
export const SERVICE_MONITORS = v1<Monitor>(MONITORING, 'ServiceMonitor', 'servicemonitors');
export const POD_MONITORS = v1<Monitor>(MONITORING, 'PodMonitor', 'podmonitors');
