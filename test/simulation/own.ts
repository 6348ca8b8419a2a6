/** Berth's own namespace. */
export const OWN = 'berth-system';
