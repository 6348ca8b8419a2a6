/** On a namespace: it is a tenant. */
export const TENANT_LABEL = 'berth.dev/tenant';
