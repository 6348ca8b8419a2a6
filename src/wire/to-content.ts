import type { TemplateContent } from '../resources/instance-template.ts';
import { withoutNulls } from './without-nulls.ts';
import type { Run } from '../http/schemas/run.ts';

/** The part of a body that both instances and templates have, as the resources write it. A command means runtype args. */
export function toContent(payload: Run): TemplateContent {
  const { env, ports, command, args, on_start: onStart, registry } = withoutNulls(payload);
  return withoutNulls({
    runtype: command || args ? ('args' as const) : undefined,
    env: env && Object.entries(env).map(([name, value]) => ({ name, value })),
    ports: ports?.map(({ container_port: containerPort, protocol, name }) => ({
      containerPort,
      protocol: protocol === 'udp' ? ('UDP' as const) : ('TCP' as const),
      ...(name && { name }),
    })),
    command,
    args,
    onStart,
    imagePullSecrets: registry === undefined ? undefined : [{ name: registry }],
  });
}
