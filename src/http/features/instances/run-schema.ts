import { z } from 'zod';
import {
  commandSchema,
  envSchema,
  imagePullSecretsSchema,
  MOST_VARIABLES,
  MOST_WORDS,
  onStartSchema,
  portsSchema,
} from '../../../resources/instance-template.ts';
import { formed } from '../../../resources/schema.ts';
import { wellFormed } from '../../interface/schema.ts';

// What an instance runs, as both an instance and a template may say it. The rules are those of the resources.

const variable = envSchema.element.shape;
const port = portsSchema.element.shape;

const environmentSchema = z
  .record(
    variable.name,
    wellFormed(variable.value.unwrap()),
    formed('an object of texts by name, such as {"HF_TOKEN": "hf_x"}'),
  )
  .refine((env) => Object.keys(env).length <= MOST_VARIABLES, `expected at most ${MOST_VARIABLES} variables`)
  .meta({ maxProperties: MOST_VARIABLES })
  .describe('Environment variables by name. For each name the instance wins over its template.');

const wordsSchema = z
  .array(
    wellFormed(commandSchema.element),
    formed('an array with a text for each word, such as ["python", "train.py"]'),
  )
  .max(MOST_WORDS);

const PORTS_FORM = 'an array such as [{"container_port": 8888}]';
const PORT_FORM = 'an object such as {"container_port": 8888, "protocol": "tcp"}';

const declaredPortSchema = z.strictObject(
  {
    container_port: port.containerPort,
    protocol: z.enum(['tcp', 'udp']).describe('tcp (default) or udp.').nullish(),
    name: port.name.unwrap().describe('Name of the port.').nullish(),
  },
  formed(PORT_FORM),
);

const declaredPortsSchema = z
  .array(declaredPortSchema, formed(PORTS_FORM))
  .max(64)
  .superRefine((ports, context) => {
    const seen = new Set<string>();
    for (const [index, { container_port: number, protocol }] of ports.entries()) {
      const identity = `${number}/${protocol ?? 'tcp'}`;
      const message = `expected each port once: ${identity} is there before`;
      if (seen.has(identity)) context.addIssue({ code: 'custom', path: [index, 'container_port'], message });
      seen.add(identity);
    }
    for (const [index, { name }] of ports.entries()) {
      if (!name || ports.findIndex((other) => other.name === name) === index) continue;
      context.addIssue({ code: 'custom', path: [index, 'name'], message: 'expected each name once' });
    }
  })
  .describe('Ports that the programs of the instance listen on.');

/** Optional fields of a body that says what to run. */
export const runFields = {
  env: environmentSchema.nullish(),
  ports: declaredPortsSchema.nullish(),
  command: wordsSchema.describe('Replaces the entrypoint of the image. Means runtype args.').nullish(),
  args: wordsSchema.describe('Replaces the arguments of the image. Means runtype args.').nullish(),
  on_start: wellFormed(onStartSchema).nullish(),
  registry: imagePullSecretsSchema.element.shape.name
    .describe(
      'Name of the registry credentials that pull a private image: a Secret of type kubernetes.io/dockerconfigjson of the tenant. Berth cannot see whether it exists; the registry refuses the image when it does not.',
    )
    .nullish(),
};

const runSchema = z.object(runFields);
export type Run = z.infer<typeof runSchema>;

/** What a body says of the program, as far as one field forbids another. */
interface Program {
  runtype?: string | null | undefined;
  command?: string[] | null | undefined;
  args?: string[] | null | undefined;
}

/** Refuses a command or arguments for a runtype that would not start them. */
export function checkProgram({ runtype, command, args }: Program, context: z.RefinementCtx): void {
  if (!runtype || runtype === 'args') return;
  const message = 'expected only with runtype args: with ssh and jupyter send on_start';
  for (const [field, words] of Object.entries({ command, args })) {
    if (words) context.addIssue({ code: 'custom', path: [field], message });
  }
}
