/** Apart from what they do, so that a server role need not load it to tell them from its own name. */
export const LOCAL_COMMANDS = ['up', 'start', 'down', 'stop', 'status', 'keep'] as const;
export type LocalCommand = (typeof LOCAL_COMMANDS)[number];
