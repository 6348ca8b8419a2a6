/** On what the controller makes in a tenant's namespace: it removes only what has these. */
export const OWN_LABELS = { 'app.kubernetes.io/managed-by': 'berth' } as const;
