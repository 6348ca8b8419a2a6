import type { LabelSelector } from './selector.ts';
import { type KubeObject, type ResourceType, v1 } from './types.ts';

// The models of client-node say `_from` where JSON has `from`.

export interface NetworkPolicyPeer {
  ipBlock?: { cidr: string; except?: readonly string[] };
  namespaceSelector?: LabelSelector;
  podSelector?: LabelSelector;
}

export interface NetworkPolicyPort {
  protocol?: string;
  port?: number | string;
  endPort?: number;
}

interface IngressRule {
  from?: readonly NetworkPolicyPeer[];
  ports?: readonly NetworkPolicyPort[];
}

interface EgressRule {
  to?: readonly NetworkPolicyPeer[];
  ports?: readonly NetworkPolicyPort[];
}

export interface NetworkPolicy extends KubeObject {
  spec?: {
    podSelector?: LabelSelector;
    policyTypes?: readonly string[];
    ingress?: readonly IngressRule[];
    egress?: readonly EgressRule[];
  };
}

export const NETWORK_POLICIES = v1<NetworkPolicy>('networking.k8s.io', 'NetworkPolicy', 'networkpolicies');

/** A rule of another kind, as far as it says what it does. Cilium has rules without an action, which let through. */
interface OtherRule {
  action?: string;
}

interface OtherRules {
  ingress?: readonly OtherRule[];
  egress?: readonly OtherRule[];
}

/** A policy beside those of Kubernetes: of a network plugin, or of the administrators. Cilium may have several rule sets. */
export interface OtherPolicy extends KubeObject {
  spec?: OtherRules;
  specs?: readonly OtherRules[];
}

function other(group: string, version: string, kind: string, namespaced = true): ResourceType<OtherPolicy> {
  return { group, version, kind, plural: `${kind.toLowerCase().slice(0, -1)}ies`, namespaced };
}

export const CILIUM_POLICIES = other('cilium.io', 'v2', 'CiliumNetworkPolicy');
export const CILIUM_CLUSTER_POLICIES = other('cilium.io', 'v2', 'CiliumClusterwideNetworkPolicy', false);
export const CALICO_POLICIES = other('crd.projectcalico.org', 'v1', 'NetworkPolicy');
export const CALICO_CLUSTER_POLICIES = other('crd.projectcalico.org', 'v1', 'GlobalNetworkPolicy', false);
export const ANTREA_POLICIES = other('crd.antrea.io', 'v1beta1', 'NetworkPolicy');
export const ANTREA_CLUSTER_POLICIES = other('crd.antrea.io', 'v1beta1', 'ClusterNetworkPolicy', false);
export const ADMIN_POLICIES = other('policy.networking.k8s.io', 'v1alpha1', 'AdminNetworkPolicy', false);
export const CLUSTER_POLICIES = other('policy.networking.k8s.io', 'v1alpha2', 'ClusterNetworkPolicy', false);
