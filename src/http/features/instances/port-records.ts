import type { TemplateContent } from '../../../resources/instance-template.ts';

interface PortRecord {
  container_port: number;
  protocol: 'tcp' | 'udp';
  name: string | null;
}

/** Declared ports as records show them. */
export function portRecords(ports: NonNullable<TemplateContent['ports']>): PortRecord[] {
  return ports.map(({ containerPort, protocol, name }) => ({
    container_port: containerPort,
    protocol: protocol === 'UDP' ? 'udp' : 'tcp',
    name: name ?? null,
  }));
}
