import { arch } from 'node:os';

/** The architecture of this machine, as Go, Debian and images name it. */
export const OWN_ARCHITECTURE = arch() === 'x64' ? 'amd64' : arch();
